#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/explain/answer_page.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/layer_graph.h"
#include "attend/pictures/source_picture.h"

namespace attend {

// The maps that are printed or drawn: one of a method, or one of each head.
struct Shown {
  std::vector<Alignment> maps;
  bool of_one_sequence = false;            // the first map's sides are one
  std::vector<TestedMethod> methods = {};  // of the first maps, in their order
  std::string text = {};                   // the source, as it was given
  std::optional<SourcePicture> picture = {};
  std::optional<LayerGraph> graph = {};  // in place of maps
};

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

// A line of JSON for each map.
std::string shown_json(const Shown& shown);

}  // namespace attend
