// Terms with a number per query and key that depends on more than their distance: dense, in
// quadratic memory.
#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/axes-inl.h"
#include "attend/ops/bias_parts.h"
#include "attend/ops/conditions-inl.h"
#include "attend/ops/key_places-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {

using at::Tensor;

Tensor checked_offsets(const Tensor& offsets, const BiasParts& parts, const char* name,
                       const Tensor& like) {
  if (!offsets.defined()) return {};
  const int64_t batch = parts.spec().batch;
  if (offsets.scalar_type() != at::kLong || offsets.sizes() != at::IntArrayRef{batch})
    fail(
        "[attention] the offsets of {} are {} of shape {}; they must be int64 of shape [batch], {}",
        name, c10::toString(offsets.scalar_type()), shape_of(offsets), batch);
  return offsets.to(like.device()).clamp(-farthest_offset, farthest_offset);
}

Tensor KeyPlaces::queries(const BiasParts& parts, const char* name, const Tensor& like) const {
  const Tensor common =
      at::arange(parts.spec().queries, like.options().dtype(at::kLong)).unsqueeze(0) + offset;
  const Tensor own = checked_offsets(offsets, parts, name, like);
  return own.defined() ? common + own.unsqueeze(1) : common;
}

Tensor KeyPlaces::keys(const BiasParts& parts, const Tensor& like) const {
  return at::arange(parts.spec().keys, like.options().dtype(at::kLong)) + first_key;
}

namespace {

// The position of a pair depends on the scores of all keys between, so no tile of keys can be
// computed without the tiles after it.
class CopeTerm : public PlacedTerm<CopeTerm> {
 public:
  CopeTerm(Tensor table, int64_t offset, Tensor offsets)
      : PlacedTerm({std::move(table)}, {.offset = offset, .offsets = std::move(offsets)}) {}

  void add_to(BiasParts& parts) const override {
    const LoweredSpec& spec = parts.spec();
    if (spec.score->family != Family::dot)
      fail(
          "[attention] cope counts the products of queries and keys, and the score is {}; take a "
          "score of the dot family, such as scaled_dot",
          spec.score->name);
    const Tensor table = parts.numbers(tensors_[0], "the table of cope");
    const Tensor query = parts.mapped_query().to(table.scalar_type()) * spec.scale;
    const bool fits = (table.dim() == 2 || (table.dim() == 3 && table.size(0) == spec.heads)) &&
                      table.size(-1) == query.size(-1) && table.size(-2) >= 1;
    if (!fits)
      fail(
          "[attention] the table of cope has shape {}; it must have shape [positions, {}] or that "
          "after an axis of {} heads",
          shape_of(table), query.size(-1), spec.heads);
    const Tensor position = positions(parts, query).clamp_max(double(table.size(-2) - 1));
    const Tensor below = position.floor().to(at::kLong), above = position.ceil().to(at::kLong);
    const Tensor products = at::matmul(query, table.transpose(-2, -1));
    const Tensor share = position - position.detach().floor();
    parts.add_dense(products.gather(3, below) * (1 - share) + products.gather(3, above) * share);
  }
  BiasTermPointer shifted_keys(int64_t, int64_t) const override {
    fail("[shifted_keys] cope counts from each key to the query; compute all keys in one call");
  }
  bool needs_all_keys() const override { return true; }

 private:
  // Sum of the gates in scope from key j to the query, both included: [B, H, Tq, Tk].
  Tensor positions(const BiasParts& parts, const Tensor& query) const {
    const LoweredSpec& spec = parts.spec();
    const Tensor key = repeat_heads(parts.mapped_key().to(query.scalar_type()), spec.heads);
    const Tensor later = places_.keys(parts, query).unsqueeze(0).unsqueeze(0) >
                         places_.queries(parts, "cope", query).unsqueeze(2);
    Tensor gates =
        at::matmul(query, key.transpose(-2, -1)).sigmoid().masked_fill(later.unsqueeze(1), 0.0);
    const Tensor in_scope =
        scope_mask(spec.scope, spec.batch, spec.heads, spec.queries, spec.keys, query.device());
    if (in_scope.defined()) gates = gates.masked_fill(in_scope.logical_not(), 0.0);
    return gates.flip(-1).cumsum(-1).flip(-1);
  }
};

// The distance is measured in shares of the query's position, so equal distances have different
// biases.
class FireTerm : public PlacedTerm<FireTerm> {
 public:
  FireTerm(const FireBias& bias)
      : PlacedTerm({bias.W_1, bias.b_1, bias.W_2, bias.b_2, bias.c, bias.threshold},
                   {.offset = bias.offset, .offsets = bias.offsets}) {}

  void add_to(BiasParts& parts) const override {
    const auto numbers = [&](size_t index) { return parts.numbers(tensors_[index], name); };
    const Tensor W_1 = numbers(0), b_1 = numbers(1), W_2 = numbers(2), b_2 = numbers(3);
    const int64_t units = W_1.numel(), heads = parts.spec().heads;
    const bool shared = W_2.dim() == 1;
    if (W_1.dim() != 1 || b_1.sizes() != W_1.sizes() || W_2.dim() < 1 || W_2.dim() > 2 ||
        W_2.size(-1) != units || (!shared && W_2.size(0) != heads) ||
        b_2.numel() != (shared ? 1 : heads))
      fail(
          "[attention] {} have shapes {}, {}, {} and {}; they must be [units], [units], [heads, "
          "units] and [heads] with {} heads, or [units] and one number",
          name, shape_of(W_1), shape_of(b_1), shape_of(W_2), shape_of(b_2), heads);
    const Tensor hidden = at::relu(shares(parts, W_1).unsqueeze(-1) * W_1 + b_1);
    const Tensor bias = at::matmul(hidden, shared ? W_2.unsqueeze(1) : W_2.t()) + b_2.view({-1});
    parts.add_dense(bias.permute({0, 3, 1, 2}));
  }

 private:
  static constexpr const char* name = "the layers of fire";

  // ln(c |i - j| + 1) / (ln(c max(L, i) + 1) + 1e-6), [B or 1, Tq, Tk]
  Tensor shares(const BiasParts& parts, const Tensor& like) const {
    const auto one = [&](size_t index, const char* which) {
      const Tensor number = parts.numbers(tensors_[index], which);
      if (number.numel() != 1)
        fail("[attention] {} has shape {}; it must be one number", which, shape_of(number));
      return number.view({1, 1, 1});
    };
    const Tensor c = one(4, "c of fire").abs(), threshold = one(5, "the threshold of fire").abs();
    const Tensor query = places_.queries(parts, "fire", like).unsqueeze(2);
    const Tensor far = (query - places_.keys(parts, like)).abs().to(like.scalar_type());
    const Tensor place = query.clamp_min(0).to(like.scalar_type());
    return (c * far).log1p() / ((c * at::maximum(threshold, place)).log1p() + 1e-6);
  }
};

}  // namespace

Bias cope(Tensor table, int64_t offset, Tensor offsets) {
  return {{std::make_shared<CopeTerm>(std::move(table), offset, std::move(offsets))}};
}

Bias fire(const FireBias& bias) { return {{std::make_shared<FireTerm>(bias)}}; }

}  // namespace attend
