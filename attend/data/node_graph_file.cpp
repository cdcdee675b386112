#include <algorithm>
#include <string>

#include "attend/base/error.h"
#include "attend/data/node_graph.h"
#include "attend/files/safetensors.h"

namespace attend {
namespace {

using at::Tensor;

Tensor taken(TensorFile& file, const std::string& name, at::ScalarType type,
             const std::string& path) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end())
    fail("{}: tensor {} is missing; train the model anew", path, name);
  if (found->second.dim() != 1 || found->second.scalar_type() != type)
    fail("{}: tensor {} has type {} and {} axes; it must have one axis of {}", path, name,
         c10::toString(found->second.scalar_type()), found->second.dim(), c10::toString(type));
  Tensor tensor = found->second.contiguous();
  file.tensors.erase(found);
  return tensor;
}

// Error unless there are `nodes` lists of ascending numbers below `most`.
void check_lists(const Tensor& offsets, const Tensor& numbers, int64_t nodes, int64_t maximum,
                 const std::string& path) {
  const auto* ends = offsets.data_ptr<int64_t>();
  const auto* all = numbers.data_ptr<int64_t>();
  if (offsets.size(0) != nodes + 1)
    fail("{}: has {} nodes, and source.vocab has {}", path, offsets.size(0) - 1, nodes);
  if (ends[0] != 0 || ends[nodes] != numbers.size(0) || !std::is_sorted(ends, ends + nodes + 1))
    fail("{}: the offsets of lists do not ascend from 0 to their end", path);
  for (int64_t node = 0; node < nodes; ++node)
    for (int64_t i = ends[node]; i < ends[node + 1]; ++i)
      if (all[i] < 0 || all[i] >= maximum || (i > ends[node] && all[i] <= all[i - 1]))
        fail("{}: a list of node {} holds {}; its numbers ascend and are below {}", path, node,
             all[i], maximum);
}

}  // namespace

void save_graph(const NodeGraph& graph, const std::string& path) {
  write_safetensors(path, {.tensors = {{"offsets", graph.offsets},
                                       {"neighbours", graph.neighbours},
                                       {"feature_offsets", graph.feature_offsets},
                                       {"features", graph.features},
                                       {"feature_values", graph.feature_values}},
                           .metadata = {}});
}

NodeGraph load_graph(const std::string& path, int64_t nodes) {
  TensorFile file = read_safetensors(path);
  NodeGraph graph{
      taken(file, "offsets", at::kLong, path), taken(file, "neighbours", at::kLong, path),
      taken(file, "feature_offsets", at::kLong, path), taken(file, "features", at::kLong, path),
      taken(file, "feature_values", at::kFloat, path)};
  if (!file.tensors.empty())
    fail("{}: tensor {} is not part of a graph", path, in_quotes(file.tensors.begin()->first));
  check_lists(graph.offsets, graph.neighbours, nodes, nodes, path);
  check_lists(graph.feature_offsets, graph.features, nodes, max_features, path);
  const auto* ends = graph.offsets.data_ptr<int64_t>();
  const auto* seen = graph.neighbours.data_ptr<int64_t>();
  for (int64_t node = 0; node < nodes; ++node)
    if (std::binary_search(seen + ends[node], seen + ends[node + 1], node))
      fail("{}: the list of node {} holds the node itself", path, node);
  if (graph.feature_values.size(0) != graph.features.size(0) ||
      !graph.feature_values.isfinite().all().item<bool>())
    fail("{}: features need one value each, a finite number", path);
  return graph;
}

}  // namespace attend
