#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>
#include <vector>

#include "attend/parallel/distributed_attention.h"

namespace attend {

using torch::autograd::variable_list;

// Indices of a call's tensors; tensors of the spec follow.
namespace input {
enum Index : size_t { query, key, value, spec };
}  // namespace input

// Data of one call of distributed_attention, shared with its backward pass.
struct DistributedCall : torch::CustomClassHolder {
  DistributedCall(Communicator& world, const AttentionSpec& spec, const SharedSequences& shared)
      : world(world), spec(spec), shared(shared) {}

  Communicator& world;
  AttentionSpec spec;
  SharedSequences shared;
  bool by_ring = false;
  bool needs_all_queries = false;
  std::vector<bool> wanted = {};  // which inputs need a gradient

  const Runs& own_queries() const { return shared.queries[static_cast<size_t>(world.rank())]; }
  const Runs& own_keys() const { return shared.keys[static_cast<size_t>(world.rank())]; }
};

// The tensors of the spec that may have a gradient, in a fixed order, without undefined ones.
variable_list tensors_of(const AttentionSpec& spec);
// The spec with these tensors replaced.
AttentionSpec with_tensors(const AttentionSpec& spec, const variable_list& tensors);

// The spec for the queries and keys of these runs without the others.
AttentionSpec spec_of_runs(const AttentionSpec& whole, const Run& queries, const Run& keys);

// Packs keys and values of one rank in a tensor of one axis, and unpacks them.
class KeyMessages {
 public:
  KeyMessages(const Sharding& sharding, const at::Tensor& key, const at::Tensor& value);

  const std::vector<int64_t>& sizes() const { return sizes_; }
  static at::Tensor packed(const at::Tensor& key, const at::Tensor& value);
  std::pair<at::Tensor, at::Tensor> unpacked(const at::Tensor& message, int64_t rank) const;

 private:
  std::vector<int64_t> lengths_, sizes_;  // one per rank
  std::vector<int64_t> key_shape_, value_shape_;
};

// Converts to the dtype of the arithmetic. in_precision() has no graph; leaf_of() is a leaf that
// needs a gradient if `wanted`.
at::Tensor in_precision(const at::Tensor& x);
at::Tensor leaf_of(const at::Tensor& x, bool wanted = true);

// Gradients of the leaves from the gradients of the result; zero for unused leaves.
variable_list gradients_of(const AttentionResult& result, const AttentionResult& upstream,
                           const variable_list& leaves);

// Attention with all keys and values on each rank. `leaves` receives the inputs of the result: own
// queries (or queries of all ranks, if needed), all keys, all values, tensors of the spec.
AttentionResult gathered_attention(const DistributedCall& call, const variable_list& inputs,
                                   variable_list& leaves);
variable_list gathered_gradients(const DistributedCall& call, const variable_list& leaves,
                                 const AttentionResult& result, const AttentionResult& upstream);

// Attention shard by shard. Gradients are complete for this rank's queries, keys and values, and
// partial for the tensors of the spec.
AttentionResult ring_attention(const DistributedCall& call, const variable_list& inputs);
variable_list ring_gradients(const DistributedCall& call, const variable_list& inputs,
                             const AttentionResult& result, const AttentionResult& upstream);

}  // namespace attend
