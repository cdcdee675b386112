#pragma once

#include <string>

#include "attend/pictures/layer_graph.h"

namespace attend::internal {

// Draws a graph with LayerGraph::around_first: the tokens in rings around the first, with labels
// made by `label`. The opacity of a line is its weight.
std::string neighbourhood_svg(const LayerGraph& graph, std::string (*label)(const std::string&),
                              const std::string& style);

}  // namespace attend::internal
