#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/pictures/attention_graph.h"

namespace attend {

// All attention of one answer as one graph: the tokens of each layer in a row, the first layer
// lowest, and a line from a token to each that it looked at in the rows below (Vig 2019 draws
// models so).
struct LayerGraph {
  struct Level {
    std::string name;  // "source", "encoder 1", "answer", "decoder 1", "pooling"
    std::vector<std::string> tokens;
  };
  struct Edge {
    size_t upper = 0, lower = 0;  // indices of levels
    int64_t from = 0, to = 0;     // the query's token of the upper level, the key's of the lower
    double weight = 0;
  };
  std::vector<Level> levels;  // the source's, then the answer's, the first layer first
  std::vector<Edge> edges;    // in the order of the maps, then from, then to
  bool around_first = false;  // the levels are one row of tokens, of whose first the top layer's
                              // vector is read: a picture shows what that looked at in the top
                              // layer, what these looked at in the one below, and so on, in rings
};

// A self-contained SVG document, light or dark as the viewer prefers: a line is as opaque as its
// weight. Around the first token, lines have their weights as tooltips. Where there are more lines
// than a picture can show, the strongest are drawn. Error where a level has more than 200 tokens.
std::string layer_graph_svg(const LayerGraph& graph);

// The same graph for other programs: a node for each token of each level, "encoder 1: not".
AttentionGraph with_named_nodes(const LayerGraph& graph);

}  // namespace attend
