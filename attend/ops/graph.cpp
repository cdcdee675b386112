#include "attend/ops/graph.h"

#include "attend/base/error.h"
#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

void check_nodes(const Tensor& nodes, int64_t count, const char* what) {
  const Tensor missing = nodes.lt(0).logical_or_(nodes.ge(count)).nonzero();
  if (missing.size(0) == 0) return;
  const auto pair = missing[0][0].item<int64_t>();
  fail("[graph] pair {} has {} {}; there are {}, counted from 0", pair, what,
       nodes[pair].item<int64_t>(), count);
}

// Appends the missing self-loops to the pairs.
Tensor with_self_loops(const Tensor& pairs, int64_t nodes) {
  const Tensor own = pairs[0].masked_select(pairs[0] == pairs[1]);
  const Tensor missing =
      at::ones({nodes}, at::kBool).index_fill_(0, own, false).nonzero().squeeze(1);
  return at::cat({pairs, at::stack({missing, missing})}, 1);
}

}  // namespace

Graph make_graph(const Tensor& given, int64_t queries, int64_t keys, SelfLoops loops) {
  if (!given.defined() || given.dim() != 2 || given.size(0) != 2 ||
      given.scalar_type() != at::kLong)
    fail("[graph] the pairs of a graph must be int64 of shape [2, edges], got {}",
         described(given));
  if (queries < 0 || keys < 0 || (queries > 0 && keys > (int64_t{1} << 62) / queries))
    fail(
        "[graph] a graph of {} queries and {} keys; neither must be negative, nor their product "
        "above 2^62",
        queries, keys);
  if (loops == SelfLoops::added && queries != keys)
    fail("[graph] self-loops need equal numbers of queries and keys, got {} and {}", queries, keys);
  Tensor pairs = contiguous_on_cpu(given);
  check_nodes(pairs[0], keys, "source");
  check_nodes(pairs[1], queries, "target");
  if (loops == SelfLoops::added) pairs = with_self_loops(pairs, keys);
  const auto [places, order] = (pairs[1] * keys + pairs[0]).sort();
  const Tensor twice = (places.diff() == 0).nonzero();
  if (twice.size(0) > 0) {
    const auto place = twice[0][0].item<int64_t>();
    fail("[graph] pairs {} and {} are the same, from {} to {}; each edge is given once",
         order[place].item<int64_t>(), order[place + 1].item<int64_t>(),
         pairs[0][order[place]].item<int64_t>(), pairs[1][order[place]].item<int64_t>());
  }
  const Tensor counts = at::bincount(pairs[1], {}, queries);
  return {at::cat({at::zeros({1}, at::kLong), counts.cumsum(0)}), pairs[0].index_select(0, order),
          order, keys};
}

Graph joined(const std::vector<Graph>& graphs) {
  if (graphs.empty()) fail("[graph] no graphs to join; give 1 or more");
  std::vector<Tensor> offsets = {at::zeros({1}, at::kLong)}, keys, order;
  int64_t edges = 0, key_count = 0;
  for (const Graph& graph : graphs) {
    offsets.push_back(graph.offsets.slice(0, 1) + edges);
    keys.push_back(graph.keys + key_count);
    order.push_back(graph.order + edges);
    edges += graph.keys.size(0);
    key_count += graph.key_count;
  }
  return {at::cat(offsets), at::cat(keys), at::cat(order), key_count};
}

}  // namespace attend
