#pragma once

#include "attend/base/settings.h"

namespace attend {

// How the nodes and edges of a graph are read.
struct GraphConfig {
  bool directed = false;           // the second node of an edge sees the first, and not both each
                                   // other
  bool normalise_features = true;  // divides the features of a node by the sum of their sizes

  Settings settings();  // keys data.*
};

}  // namespace attend
