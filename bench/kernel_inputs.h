#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "attend/base/error.h"
#include "attend/kernels/attention.h"

namespace attend::bench {

inline double pairs(const kernels::Shape& s) {
  return static_cast<double>(s.batch * s.heads * s.queries * s.keys);
}

// Multiply-adds of the products of tiles, as two operations each. Forward: scores and contexts.
// Backward: the scores again, dP, dQ, dK and dV. Element-wise work between them is not counted.
inline double forward_operations(const kernels::Shape& s) {
  return 2 * pairs(s) * static_cast<double>(s.depth + s.value_depth);
}
inline double backward_operations(const kernels::Shape& s) {
  return 2 * pairs(s) * static_cast<double>(3 * s.depth + 2 * s.value_depth);
}

// A problem with its own normally distributed inputs and its own outputs. Change problem and
// gradients only before the first run.
template <class S>
class KernelInputs {
 public:
  using T = kernels::Compute<S>;

  explicit KernelInputs(const kernels::Shape& s, kernels::Family family = kernels::Family::dot,
                        kernels::Scope scope = {}) {
    problem.shape = s;
    problem.scope = std::move(scope);
    problem.score.family = family;
    // Distances are sums of d terms of about 2. The scale keeps the weights from concentrating on
    // one key.
    const auto depth = static_cast<double>(s.depth);
    if (family == kernels::Family::dot) problem.score.scale = 1 / std::sqrt(depth);
    if (family == kernels::Family::additive) problem.score.vector = random(s.depth);
    if (family == kernels::Family::squared_distance) problem.score.scale = 0.5 / std::sqrt(depth);
    if (family == kernels::Family::absolute_distance) problem.score.scale = 1 / std::sqrt(depth);
    const int64_t rows = s.batch * s.heads * s.queries, keys = s.batch * s.key_heads * s.keys;
    problem.query = {stored(rows * s.depth), s.heads * s.queries * s.depth, s.queries * s.depth,
                     s.depth};
    problem.key = {stored(keys * s.depth), s.key_heads * s.keys * s.depth, s.keys * s.depth,
                   s.depth};
    problem.value = {stored(keys * s.value_depth), s.key_heads * s.keys * s.value_depth,
                     s.keys * s.value_depth, s.value_depth};
    result_.context =
        kernels::contiguous(stored(rows * s.value_depth), s.heads, s.queries, s.value_depth);
    result_.lse = random(rows);
    if (kernels::kIsHalf<S>) result_.unrounded = random(rows * s.value_depth);
    grad_context_ =
        kernels::contiguous(stored(rows * s.value_depth), s.heads, s.queries, s.value_depth);
    gradients.query = kernels::contiguous(stored(rows * s.depth), s.heads, s.queries, s.depth);
    gradients.key = kernels::contiguous(stored(keys * s.depth), s.key_heads, s.keys, s.depth);
    gradients.value =
        kernels::contiguous(stored(keys * s.value_depth), s.key_heads, s.keys, s.value_depth);
    if (family == kernels::Family::additive) gradients.vector = random(s.heads * s.depth);
  }
  KernelInputs(const KernelInputs&) = delete;
  KernelInputs& operator=(const KernelInputs&) = delete;

  void forward(int threads) { kernels::attention_forward<S>(problem, result_, threads); }

  // Runs forward. Throws if it leaves contexts unwritten or writes NaN, since a time would then be
  // meaningless.
  std::vector<S> checked_context() {
    std::vector<S>& context = stored_[kContext];
    std::fill(context.begin(), context.end(), std::numeric_limits<S>::quiet_NaN());
    forward(1);
    if (std::any_of(context.begin(), context.end(), [](S x) { return std::isnan(x); })) {
      fail("[bench] the kernels wrote no context, or NaN");
    }
    return context;
  }

  // Requires a preceding forward().
  void backward(int threads) {
    const auto constant = [](const kernels::View<S>& view) {
      return kernels::View<const S>{view.data, view.batch_stride, view.head_stride,
                                    view.row_stride};
    };
    kernels::View<const T> context;
    if constexpr (kernels::kIsHalf<S>) {
      const auto& s = problem.shape;
      context = kernels::contiguous<const T>(result_.unrounded, s.heads, s.queries, s.value_depth);
    } else {
      context = constant(result_.context);
    }
    kernels::attention_backward<S>(
        problem, {context, result_.lse, constant(grad_context_), nullptr}, gradients, threads);
  }

  // Arrays with the lifetime of this object.
  T* random(int64_t count, double mean = 0) {
    std::vector<T>& numbers = computed_.emplace_back(count);
    for (T& x : numbers) x = static_cast<T>(mean + normal_(engine_));
    return numbers.data();
  }
  double* doubles(int64_t count) { return doubles_.emplace_back(count).data(); }
  int64_t* positions(int64_t count) { return positions_.emplace_back(count).data(); }

  kernels::Problem<S> problem;
  kernels::Gradients<S> gradients;

 private:
  static constexpr size_t kContext = 3;  // index of the context in stored_, after query, key, value

  S* stored(int64_t count) {
    std::vector<S>& numbers = stored_.emplace_back(count);
    for (S& x : numbers) {
      const auto number = static_cast<T>(normal_(engine_));
      if constexpr (kernels::kIsHalf<S>) {
        x = kernels::narrow<S>(number);
      } else {
        x = number;
      }
    }
    return numbers.data();
  }

  std::mt19937 engine_{1};
  std::normal_distribution<float> normal_;
  std::deque<std::vector<S>> stored_;
  std::deque<std::vector<T>> computed_;
  std::deque<std::vector<int64_t>> positions_;
  std::deque<std::vector<double>> doubles_;
  kernels::Result<S> result_;
  kernels::View<S> grad_context_;
};

}  // namespace attend::bench
