#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/ops/scopes.h"

namespace attend {

// A graph as the scope `edges` takes it. Where E features of edges are in the order of the pairs it
// was made of, features.index_select(0, order) are in that of the scope.
struct Graph {
  at::Tensor offsets;     // int64 [queries + 1]
  at::Tensor keys;        // int64 [E]
  at::Tensor order;       // int64 [E]: edge n is pair order[n]
  int64_t key_count = 0;  // of the keys that there are

  int64_t query_count() const { return offsets.size(0) - 1; }
};

// Whether each node sees itself, too: the edges that this adds count as pairs behind the others, in
// the order of the nodes.
enum class SelfLoops { as_given, added };

// The graph of pairs int64 [2, E]: pair e leads from key pairs[0][e], its source, to query
// pairs[1][e], its target, which sees it. Error on another shape or dtype, on a node that is not
// there, on a pair that is there twice, and on self-loops where queries and keys are not as many.
Graph make_graph(const at::Tensor& pairs, int64_t queries, int64_t keys,
                 SelfLoops loops = SelfLoops::as_given);

// Several graphs as one, whose queries and keys stand one behind the other; no edge leads from one
// to another. Error where there is none.
Graph joined(const std::vector<Graph>& graphs);

inline Scope edges(const Graph& graph) { return edges(graph.offsets, graph.keys); }

}  // namespace attend
