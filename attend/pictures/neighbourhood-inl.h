#pragma once

#include <string>

#include "attend/pictures/layer_graph.h"

namespace attend::internal {

// LayerGraph::around_first as a picture: the tokens in rings around the first, each with the label
// that `label` makes of it, and lines as opaque as their weights.
std::string neighbourhood_svg(const LayerGraph& graph, std::string (*label)(const std::string&),
                              const std::string& style);

}  // namespace attend::internal
