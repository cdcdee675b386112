#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "attend/kernels/cpu/plan-inl.h"

// Final sums of the backward passes, over tiles of keys or along edges.

namespace attend::kernels {

// sum[n] = the sum of partial[part][n] over the parts, in their order.
template <class T>
void add_parts(const T* partial, int64_t parts, int64_t count, T* sum) {
  if (partial == nullptr || sum == nullptr) return;
  std::fill_n(sum, count, T(0));
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t n = 0; n < count; ++n) sum[n] += partial[part * count + n];
  }
}

// With w = exp(sink - lse), the weight of the sink: dsink = sum_i w_i (dlse_i - sum_e dc_ie c_ie).
template <class T>
void add_sink_gradients(const Problem<T>& problem, const Upstream<T>& upstream,
                        const RowShifts<T>& shifts, T* gradient) {
  const Shape& s = problem.shape;
  std::fill_n(gradient, s.heads, T(0));
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const int64_t i = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
    const T* grad = upstream.grad_context.row(b, h, i);
    const T* context = upstream.context.row(b, h, i);
    T slope = upstream.grad_lse == nullptr ? T(0) : upstream.grad_lse[row];
    for (int64_t e = 0; e < s.value_depth; ++e) slope -= grad[e] * context[e];
    const T sink = problem.sinks[h] * T(kLog4E);
    gradient[h] += std::exp2(2 * (sink - shifts.reference[row] - shifts.offset[row])) * slope;
  }
}

// sum[h] = the sum of rows [batch, heads, queries] of head h.
template <class T>
void add_rows_of_heads(const Shape& s, const T* rows, T* sum) {
  if (sum == nullptr) return;
  std::vector<double> sums(static_cast<size_t>(s.heads));
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row)
    sums[static_cast<size_t>(row / s.queries % s.heads)] += rows[row];
  std::transform(sums.begin(), sums.end(), sum, [](double x) { return static_cast<T>(x); });
}

// Sets all elements that the strides of a bias reach to 0.
template <class T>
void clear_gradient(const Shape& s, const View<const T>& view, int64_t columns, T* gradient) {
  for (int64_t b = 0; b < (view.batch_stride == 0 ? 1 : s.batch); ++b) {
    for (int64_t h = 0; h < (view.head_stride == 0 ? 1 : s.heads); ++h) {
      for (int64_t i = 0; i < (view.row_stride == 0 ? 1 : s.queries); ++i)
        std::fill_n(gradient + (view.row(b, h, i) - view.data), columns, T(0));
    }
  }
}

}  // namespace attend::kernels
