#pragma once

#include <vector>

#include "attend/explain/layer_maps.h"
#include "attend/pictures/layer_graph.h"

namespace attend {

// Returns the weights of all maps as one graph, each the mean over its heads. Weights that are 0 or
// not finite give no edge.
LayerGraph layer_graph(const std::vector<LayerMap>& maps);

}  // namespace attend
