#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/explain/shown.h"
#include "attend/pictures/layer_graph.h"

namespace attend {

// File type that `attend explain` writes, by its suffix.
struct ExplainFile {
  std::string_view suffix;
  std::string_view note;  // shown after the suffix
  // Writers of maps and of a graph of layers; null if unsupported. Error on maps that the type
  // cannot hold.
  std::function<std::string(const Shown& shown)> maps;
  std::function<std::string(const LayerGraph& graph)> graph;
  bool page = false;  // a page of all methods and layers, independent of the selected view
};

const std::vector<ExplainFile>& explain_files();

// Lists of all suffixes, and of the suffixes that support a graph of layers.
std::string listed_explain_files();
std::string listed_layer_graph_files();

// Returns the bytes of the file. Error if the type of its suffix cannot hold what is shown.
std::string explain_file(const std::string& path, const Shown& shown);

}  // namespace attend
