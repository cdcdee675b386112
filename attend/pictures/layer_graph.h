#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/pictures/attention_graph.h"

namespace attend {

// All attention of one answer as one graph: a row of tokens per layer, the first layer lowest, and
// lines from each token to the tokens that it attended to in rows below (as in Vig 2019).
struct LayerGraph {
  struct Level {
    std::string name;  // "source", "encoder 1", "answer", "decoder 1", "pooling"
    std::vector<std::string> tokens;
  };
  struct Edge {
    size_t upper = 0, lower = 0;  // indices of levels
    int64_t from = 0, to = 0;     // query token of the upper level, key token of the lower
    double weight = 0;
  };
  std::vector<Level> levels;  // the source's, then the answer's, the first layer first
  std::vector<Edge> edges;    // in the order of the maps, then from, then to
  // All levels have the same tokens, and the answer is read from the first token of the top layer.
  // A picture shows in rings what it attended to in the top layer, what these tokens attended to in
  // the layer below, and so on.
  bool around_first = false;
};

// Returns a self-contained SVG document, light or dark as the viewer prefers. The opacity of a line
// is its weight. Around the first token, lines have tooltips with their weights. If there are too
// many lines for a picture, only the strongest are drawn. Error if a level has more than 200
// tokens.
std::string layer_graph_svg(const LayerGraph& graph);

// Converts the graph for other programs: a node per token and level, "encoder 1: not".
AttentionGraph with_named_nodes(const LayerGraph& graph);

}  // namespace attend
