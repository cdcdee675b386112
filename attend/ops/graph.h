#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/ops/scopes.h"

namespace attend {

// A graph in the form that the scope `edges` takes. `order` sorts E edge features from the order of
// the pairs to the order of the edges: features.index_select(0, order).
struct Graph {
  at::Tensor offsets;     // int64 [queries + 1]
  at::Tensor keys;        // int64 [E]
  at::Tensor order;       // int64 [E]: edge n is pair order[n]
  int64_t key_count = 0;  // number of keys of the graph

  int64_t query_count() const { return offsets.size(0) - 1; }
};

// Whether each node also sees itself. Added edges count as pairs after the given ones, in the order
// of the nodes.
enum class SelfLoops { as_given, added };

// Makes a graph of pairs int64 [2, E]: pair e leads from source key pairs[0][e] to target query
// pairs[1][e]; the target sees the source. Error on another shape or dtype, an unknown node, a
// repeated pair, and on self-loops if the numbers of queries and keys differ.
Graph make_graph(const at::Tensor& pairs, int64_t queries, int64_t keys,
                 SelfLoops loops = SelfLoops::as_given);

// Joins several graphs into one by concatenating their queries and keys; no edge connects two
// graphs. Error on an empty list.
Graph joined(const std::vector<Graph>& graphs);

inline Scope edges(const Graph& graph) { return edges(graph.offsets, graph.keys); }

}  // namespace attend
