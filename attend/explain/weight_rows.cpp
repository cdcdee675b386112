#include <cmath>
#include <limits>

#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/weight_rows-inl.h"
#include "attend/explain/weight_tests.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double least_share = 1e-6;  // variables start from its logarithm or log odds

// Rows of an attention that each token of the answer reads: [T, rows].
Tensor rows_read(const Subject& subject, const TracedAttention& attention) {
  const int64_t length = subject.target_length();
  if (attention.rows() == 1) return at::zeros({length, 1}, at::kLong);  // pooling
  if (attention.site.reads_source) return at::arange(length).unsqueeze(1);
  const Tensor shares = subject.network().top_vectors_of(subject.batch).shares;
  const auto maximum = (shares != 0).sum(1).max().item<int64_t>();
  return std::get<1>(shares.topk(maximum, 1));
}

// Random numbers [n, 1, rows, keys], all different.
Tensor noise_like(const Tensor& weights, const at::Generator& draws) {
  return at::rand({weights.size(0), 1, weights.size(2), weights.size(3)}, draws, at::kDouble);
}

Tensor places_of(const Tensor& keys, int64_t count) {
  return at::arange(count) == keys;  // [.., 1] -> [.., count]
}

// Weights as shares of the sum of their magnitudes, the negative ones after the others.
Tensor signed_shares(const Tensor& weights) {
  const Tensor parts = at::cat({weights.clamp_min(0), (-weights).clamp_min(0)}, -1);
  const Tensor sums = parts.sum(-1, true);
  return parts / sums.masked_fill(sums == 0, 1.0);
}

}  // namespace

WeightRows::WeightRows(const Subject& subject, const TracedAttention& attention, int64_t maximum)
    : row_(attention.calls[0].spec.normaliser.row()),
      has_sink_(attention.calls[0].spec.sink.defined()) {
  const Tensor all = float64_on_cpu(traced_weights(attention));
  const Tensor scope = traced_scope(attention).cpu();
  const Tensor rows = rows_read(subject, attention);
  std::vector<Tensor> weights, in_scope, read;
  for (const int64_t token : asked_places(subject, maximum)) {
    const Tensor own = scope.index_select(1, rows[token]);
    if (own.sum(2).max().item<int64_t>() < 2) continue;
    tokens_.push_back(token);
    read.push_back(rows[token]);
    in_scope.push_back(own);
    weights.push_back(all.index_select(1, rows[token]));
  }
  if (tokens_.empty()) return;
  rows_ = at::stack(read);
  weights_ = at::stack(weights);
  in_scope_ = at::stack(in_scope);
}

Tensor WeightRows::largest() const {
  return places_of(weights_.abs().sum(1, true).argmax(3, true), weights_.size(3));
}

Tensor WeightRows::another(const at::Generator& draws) const {
  const Tensor others = in_scope_.any(1, true).logical_and(largest().logical_not());
  const Tensor drawn =
      noise_like(weights_, draws).masked_fill(others.logical_not(), -1.0).argmax(3, true);
  return places_of(drawn, weights_.size(3)).logical_and(others);
}

Tensor WeightRows::without(const Tensor& keys) const {
  Tensor left = weights_.masked_fill(keys, 0.0);
  if (!must_sum_to_one()) return left;
  const Tensor sums = left.sum(3, true);
  return left * at::where(sums > 0, weights_.sum(3, true) / sums, 1.0);
}

Tensor WeightRows::level() const {
  const Tensor mean = weights_.sum(3, true) / in_scope_.sum(3, true).clamp_min(1);
  return mean * in_scope_;
}

Tensor WeightRows::permuted(const Tensor& which, const at::Generator& draws) const {
  const Tensor weights = weights_.index_select(0, which), scope = in_scope_.index_select(0, which);
  const Tensor outside = scope.logical_not();
  // Moves the keys in scope, in random order, to the positions in scope, in ascending order.
  const Tensor order =
      noise_like(weights, draws).expand_as(weights).masked_fill(outside, 2.0).argsort(3, false);
  const Tensor places = outside.to(at::kByte).argsort(/*stable=*/true, 3, false);
  return at::zeros_like(weights).scatter(3, places, weights.gather(3, order));
}

Tensor WeightRows::near(const at::Generator& draws) const {
  Tensor variables;
  switch (row_.range) {
    case WeightRange::shares: {
      Tensor shares = weights_;
      if (!must_sum_to_one())  // the remainder has a variable of its own
        shares = at::cat({shares, 1 - shares.sum(3, true)}, 3);
      variables = shares.clamp_min(least_share).log();
      break;
    }
    case WeightRange::between:
      variables = weights_.logit(least_share);
      break;
    case WeightRange::numbers:
      variables = weights_ / weights_.abs().amax(3, true).clamp_min(least_share);
      break;
  }
  return variables + at::randn(variables.sizes(), draws, at::kDouble);
}

Tensor WeightRows::of_variables(const Tensor& variables) const {
  const Tensor outside = in_scope_.logical_not();
  const int64_t keys = weights_.size(3);
  Tensor weights;
  switch (row_.range) {
    case WeightRange::shares: {
      Tensor places = variables.slice(3, 0, keys).masked_fill(outside, -INFINITY);
      if (!must_sum_to_one()) places = at::cat({places, variables.slice(3, keys)}, 3);
      weights = places.softmax(3).slice(3, 0, keys);
      break;
    }
    case WeightRange::between:
      weights = variables.sigmoid();
      break;
    case WeightRange::numbers:
      weights = variables * weights_.abs().amax(3, true).clamp_min(least_share);
      break;
  }
  return weights.masked_fill(outside, 0.0);
}

Tensor row_divergence(const Tensor& a, const Tensor& b) {
  const Tensor p = signed_shares(a), q = signed_shares(b), m = 0.5 * (p + q);
  // The logarithm of 0 would give NaN gradients for keys without weight.
  const auto log = [](const Tensor& x) {
    return x.clamp_min(std::numeric_limits<double>::min()).log();
  };
  const auto kl = [&](const Tensor& x) { return (x * (log(x) - log(m))).sum(-1); };
  return 0.5 * (kl(p) + kl(q));
}

}  // namespace attend
