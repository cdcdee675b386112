#include "attend/nn/sparse_branches.h"

#include <algorithm>
#include <array>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t branch_count = 3;

void check_sizes(const SparseBranchSizes& sizes) {
  if (sizes.block < 1 || sizes.count < 1 || sizes.window < 1)
    fail(
        "[sparse branches] got blocks of {} keys, {} selected blocks and a window of {}; each must "
        "be 1 or more",
        sizes.block, sizes.count, sizes.window);
}

// Means [B, heads, whole blocks, D] of x [B, heads, T, D].
Tensor block_means(const Tensor& x, int64_t block) {
  const int64_t whole = x.size(2) / block;
  return x.narrow(2, 0, whole * block).unflatten(2, {whole, block}).mean(3);
}

// Layout [B, heads, Tq, blocks] by the weights [B, heads, Tq, whole blocks] of the means.
Tensor selected_blocks(const SparseBranchSizes& sizes, const SparseHeads& heads,
                       const Tensor& weights) {
  const int64_t whole = weights.size(3), block = sizes.block;
  const int64_t blocks = (heads.key.size(2) + block - 1) / block;
  const int64_t key_heads = heads.key.size(1), sharing = weights.size(1) / key_heads;
  const auto numbers = weights.options().dtype(at::kLong).requires_grad(false);
  const Tensor own = at::floor_divide(
      at::arange(heads.query.size(2), numbers).view({-1, 1}) + heads.offset, block);
  const Tensor number = at::arange(blocks, numbers);
  const Tensor first = (number == own).logical_or(number == own - 1).logical_or(number == 0);
  Tensor worth = at::constant_pad_nd(weights.detach().unflatten(1, {key_heads, sharing}).sum(2),
                                     {0, blocks - whole});
  worth = worth.masked_fill(first, INFINITY).masked_fill(number > own, -INFINITY);
  const Tensor taken =
      std::get<1>(at::sort(worth, /*stable=*/true, /*dim=*/-1, /*descending=*/true))
          .narrow(3, 0, std::min(sizes.count, blocks));
  const Tensor past = (number <= own).expand_as(worth);
  return at::zeros_like(worth, past.options())
      .scatter(3, taken, past.gather(3, taken))
      .repeat_interleave(sharing, 1);
}

// The three branches.
class Branches {
 public:
  Branches(const SparseBranchSizes& sizes, const SparseHeads& heads, const AttentionSpec& spec,
           const Pass& pass)
      : sizes_(sizes), keys_(heads.key.size(2)) {
    check_sizes(sizes);
    const int64_t block = sizes.block;
    const auto numbers = heads.query.options().dtype(at::kLong).requires_grad(false);
    const Tensor query = at::arange(heads.query.size(2), numbers).view({1, 1, -1, 1});
    // A mean is read from the last key of its block on.
    const Tensor last = (at::arange(keys_ / block, numbers) + 1) * block - 1;
    AttentionSpec own = spec;
    own.scope = dense_mask(last <= query + heads.offset);
    add({heads.query, block_means(heads.key, block), block_means(heads.value, block)}, own, pass);
    own.scope = spec.scope & row_blocks(selected_blocks(sizes, heads, weights_of(0)), sizes.block);
    add(heads, own, pass);
    own.scope = spec.scope & shifted(window(sizes.window - 1, 0), heads.offset);
    add(heads, own, pass);
  }

  Tensor contexts(const Tensor& gates) const {
    Tensor sum = gates[0] * calls_[0].result.context;
    for (size_t i = 1; i < calls_.size(); ++i)
      sum = sum + gates[static_cast<int64_t>(i)] * calls_[i].result.context;
    return sum;
  }

  Tensor weights(const Tensor& gates) const {
    const Tensor spread = weights_of(0).repeat_interleave(sizes_.block, 3) / sizes_.block;
    Tensor sum = gates[0] * at::constant_pad_nd(spread, {0, keys_ - spread.size(3)});
    for (size_t i = 1; i < calls_.size(); ++i)
      sum = sum + gates[static_cast<int64_t>(i)] * weights_of(i);
    return sum;
  }

 private:
  void add(const SparseHeads& heads, const AttentionSpec& spec, const Pass& pass) {
    calls_.push_back({heads.query, heads.key, heads.value, spec, {}});
    calls_.back().result = pass.attention(heads.query, heads.key, heads.value, spec);
  }
  Tensor weights_of(size_t i) const {
    const AttentionCall& call = calls_[i];
    return attention_weights(call.query, call.key, call.result.lse, call.spec);
  }

  SparseBranchSizes sizes_;
  int64_t keys_;
  std::vector<AttentionCall> calls_;
};

}  // namespace

Tensor sparse_contexts(const SparseBranchSizes& sizes, const SparseHeads& heads,
                       const AttentionSpec& spec, const Tensor& gates, const Pass& pass) {
  return Branches(sizes, heads, spec, pass).contexts(gates);
}

Tensor sparse_weights(const SparseBranchSizes& sizes, const SparseHeads& heads,
                      const AttentionSpec& spec, const Tensor& gates, const Pass& pass) {
  return Branches(sizes, heads, spec, pass).weights(gates);
}

SparseBranches::SparseBranches(const SparseBranchSizes& sizes, int64_t depth, int64_t heads)
    : sizes_(sizes), heads_(heads) {
  check_sizes(sizes);
  gate_ = register_module("gate", xavier_linear(depth, branch_count * heads));
}

Tensor SparseBranches::attend(const SparseHeads& heads, const AttentionSpec& spec,
                              const Tensor& input, const Tensor& output, const Pass& pass) {
  const Tensor gates = at::sigmoid(gate_->forward(input, pass))
                           .unflatten(2, {branch_count, heads_})
                           .permute({2, 0, 3, 1})
                           .unsqueeze(4);
  if (pass.watch == nullptr) return sparse_contexts(sizes_, heads, spec, gates, pass);
  const Tensor weights = sparse_weights(sizes_, heads, spec, gates, pass.unseen());
  return pass.apply_weights(weights, heads.value, spec, output);
}

}  // namespace attend
