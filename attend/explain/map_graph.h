#pragma once

#include <vector>

#include "attend/explain/layer_maps.h"
#include "attend/pictures/layer_graph.h"

namespace attend {

// The weights of all maps as one graph, each the mean of its heads. Weights that are 0 or not
// finite are no edge.
LayerGraph layer_graph(const std::vector<LayerMap>& maps);

}  // namespace attend
