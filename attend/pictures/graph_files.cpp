#include "attend/pictures/graph_files.h"

#include "attend/base/file_formats.h"

namespace attend {

const std::vector<GraphFile>& graph_files() {
  static const std::vector<GraphFile> table = {
      {".dot", "", "text/vnd.graphviz; charset=utf-8", graph_dot},
      {".graphml", "", "application/graphml+xml", graph_graphml}};
  return table;
}

std::string listed_graph_files() {
  return listed_formats(graph_files(), [](const GraphFile&) { return true; });
}

}  // namespace attend
