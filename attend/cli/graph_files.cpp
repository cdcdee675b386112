#include "attend/cli/graph_files.h"

#include "attend/cli/file_formats.h"

namespace attend {

const std::vector<GraphFile>& graph_files() {
  static const std::vector<GraphFile> table = {{".dot", "", graph_dot},
                                               {".graphml", "", graph_graphml}};
  return table;
}

std::string listed_graph_files() {
  return listed_formats(graph_files(), [](const GraphFile&) { return true; });
}

}  // namespace attend
