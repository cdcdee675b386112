#pragma once

#include "attend/base/settings.h"

namespace attend {

// How the nodes and edges of a graph are read.
struct GraphConfig {
  bool directed = false;           // edges are seen only from their second node
  bool normalise_features = true;  // divides by the sum of a node's absolute values

  Settings settings();  // keys data.*
};

}  // namespace attend
