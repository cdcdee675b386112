#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/pictures/attention_graph.h"

namespace attend {

// A language of graphs, by the suffix of its files.
struct GraphFile {
  std::string_view suffix;
  std::string_view note;  // for people, behind the suffix
  std::string (*write)(const AttentionGraph& graph);
};

const std::vector<GraphFile>& graph_files();

// Their suffixes, for people.
std::string listed_graph_files();

}  // namespace attend
