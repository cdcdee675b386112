#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/explain/shown.h"
#include "attend/pictures/layer_graph.h"

namespace attend {

// A kind of file that attend explain writes, by its suffix.
struct ExplainFile {
  std::string_view suffix;
  std::string_view note;  // for people, behind the suffix
  // Writers of maps and of a graph of layers; null where this kind has none. Error on maps that it
  // cannot hold.
  std::function<std::string(const Shown& shown)> maps;
  std::function<std::string(const LayerGraph& graph)> graph;
  bool page = false;  // it is a page of all methods and layers, whatever the command shows
};

const std::vector<ExplainFile>& explain_files();

// The suffixes, for people, and those of kinds that can hold a graph of layers.
std::string listed_explain_files();
std::string listed_layer_graph_files();

// Returns the bytes of the file. Error on a name whose suffix cannot hold what is shown.
std::string explain_file(const std::string& path, const Shown& shown);

}  // namespace attend
