#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>
#include <vector>

#include "attend/parallel/distributed_attention.h"

namespace attend {

using torch::autograd::variable_list;

// Places of a call's tensors; those of the spec follow.
namespace input {
enum Index : size_t { query, key, value, of_spec };
}  // namespace input

// One call of distributed_attention, the same for its backward pass.
struct DistributedCall : torch::CustomClassHolder {
  DistributedCall(Communicator& world, const AttentionSpec& spec, const SharedSequences& shared)
      : world(world), spec(spec), shared(shared) {}

  Communicator& world;
  AttentionSpec spec;
  SharedSequences shared;
  bool by_ring = false;
  bool needs_all_queries = false;
  std::vector<bool> wanted = {};  // the inputs that need a gradient

  const Runs& own_queries() const { return shared.queries[static_cast<size_t>(world.rank())]; }
  const Runs& own_keys() const { return shared.keys[static_cast<size_t>(world.rank())]; }
};

// The tensors of the spec that may have a gradient, in one order; undefined ones are left out.
variable_list tensors_of(const AttentionSpec& spec);
// The spec with others in their places.
AttentionSpec with_tensors(const AttentionSpec& spec, const variable_list& tensors);

// The choices for the queries and keys of these runs when the others are absent.
AttentionSpec spec_of_runs(const AttentionSpec& whole, const Run& queries, const Run& keys);

// Keys and values of one rank in one tensor of one axis, and back.
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

// In the dtype of the arithmetic, without a graph; with one, where a gradient is to be taken.
at::Tensor in_precision(const at::Tensor& x);
at::Tensor leaf_of(const at::Tensor& x, bool wanted = true);

// The gradients of the leaves from those of the result, zeros where nothing flows.
variable_list gradients_of(const AttentionResult& result, const AttentionResult& upstream,
                           const variable_list& leaves);

// With all keys and values. `leaves` are what the result was computed from: own queries or, where
// all are needed, those of all ranks; keys and values of all; tensors of the spec.
AttentionResult gathered_attention(const DistributedCall& call, const variable_list& inputs,
                                   variable_list& leaves);
variable_list gathered_gradients(const DistributedCall& call, const variable_list& leaves,
                                 const AttentionResult& result, const AttentionResult& upstream);

// Shard after shard. The gradients are those that this rank has: of its own queries, keys and
// values the whole, of the tensors of the spec its part.
AttentionResult ring_attention(const DistributedCall& call, const variable_list& inputs);
variable_list ring_gradients(const DistributedCall& call, const variable_list& inputs,
                             const AttentionResult& result, const AttentionResult& upstream);

}  // namespace attend
