#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/pictures/attention_graph.h"

namespace attend {

// Graph language, by the suffix of its files.
struct GraphFile {
  std::string_view suffix;
  std::string_view note;  // shown after the suffix
  const char* media_type;
  std::string (*write)(const AttentionGraph& graph);
};

const std::vector<GraphFile>& graph_files();

// List of the suffixes.
std::string listed_graph_files();

}  // namespace attend
