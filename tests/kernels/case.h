#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "attend/kernels/cpu/naive-inl.h"

// Inputs of a problem for the tests of the kernels: numbers, their memory layout, and the problem
// made from both.

namespace attend::kernels::testing {

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const From& x : from) to.push_back(stored<To>(number(x)));
  return to;
}

// The axes that a bias has; it is broadcast over the others.
struct Axes {
  bool batch = false, heads = true, queries = true;

  int64_t count(const Shape& s, int64_t last) const {
    return (batch ? s.batch : 1) * (heads ? s.heads : 1) * (queries ? s.queries : 1) * last;
  }

  template <class T>
  View<T> view(const Shape& s, int64_t last, T* data) const {
    const int64_t row = last, head = row * (queries ? s.queries : 1);
    return {data, batch ? head * (heads ? s.heads : 1) : 0, heads ? head : 0, queries ? row : 0};
  }
};

enum class Layout { heads_first, interleaved, padded };

// [batch, heads, rows, depth] numbers in memory, with marks in all gaps.
template <class S>
class Placed {
 public:
  Placed(int64_t batch, int64_t heads, int64_t rows, int64_t depth, Layout layout)
      : batch_(batch), heads_(heads), rows_(rows), depth_(depth) {
    const int64_t wide = depth + (layout == Layout::padded ? 5 : 0);
    view_ = layout == Layout::interleaved
                ? View<S>{nullptr, rows * heads * depth, depth, heads * depth}
                : View<S>{nullptr, heads * rows * wide, rows * wide, wide};
    memory_.assign(batch * heads * rows * wide, mark());
    view_.data = memory_.data();
  }

  Placed(const std::vector<S>& numbers, int64_t batch, int64_t heads, int64_t rows, int64_t depth,
         Layout layout)
      : Placed(batch, heads, rows, depth, layout) {
    size_t next = 0;
    each([&](S& x) { x = numbers[next++]; });
  }

  Placed(Placed&&) noexcept = default;
  Placed(const Placed&) = delete;

  const View<S>& view() const { return view_; }
  View<const S> input() const {
    return {view_.data, view_.batch_stride, view_.head_stride, view_.row_stride};
  }

  std::vector<S> numbers() const {
    std::vector<S> all;
    all.reserve(batch_ * heads_ * rows_ * depth_);
    each([&](const S& x) { all.push_back(x); });
    return all;
  }

  // Returns whether the gaps between the rows are unchanged.
  bool gaps_untouched() {
    each([&](S& x) { x = mark(); });
    return std::all_of(memory_.begin(), memory_.end(),
                       [](const S& x) { return number(x) == number(mark()); });
  }

 private:
  static S mark() {
    if constexpr (kIsHalf<S>) {
      return S{0x4a00};
    } else {
      return S(7);
    }
  }

  template <class Work>
  void each(const Work& work) const {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t h = 0; h < heads_; ++h) {
        for (int64_t i = 0; i < rows_; ++i) {
          for (int64_t a = 0; a < depth_; ++a) work(view_.row(b, h, i)[a]);
        }
      }
    }
  }

  int64_t batch_, heads_, rows_, depth_;
  View<S> view_;
  std::vector<S> memory_;
};

// Contiguous arrays in the shapes of attention.h; an empty array is absent.
template <class S>
struct Case {
  using C = Compute<S>;

  Shape shape;
  Score<double> score;  // without its vector
  bool shared_vector = false;
  Scope scope;
  Normaliser normaliser = Normaliser::softmax;
  Dropout dropout;
  std::vector<S> query, key, value, grad_context;
  std::vector<C> vector, grad_lse, dense, slopes, sinks, relative, centres, widths, edges, alphas;
  int64_t top = 0;
  std::vector<double> query_sums, key_sums;
  std::vector<C> query_products, key_products;
  std::vector<int32_t> columns;  // [queries + keys - 1], or a row per batch entry
  int64_t product_columns = 0;
  Axes dense_axes, relative_axes, edge_axes;
  int64_t slope_offset = 0, relative_count = 0, relative_offset = 0;
  std::vector<int64_t> query_positions, key_positions;

  int64_t rows() const { return shape.batch * shape.heads * shape.queries; }
};

template <class T>
const T* pointer(const std::vector<T>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

template <class T>
T* pointer(std::vector<T>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

// A problem with its arrays.
template <class S>
struct PlacedCase {
  const Case<S>& c;
  Layout layout;
  Placed<S> query{c.query, c.shape.batch, c.shape.heads, c.shape.queries, c.shape.depth, layout};
  Placed<S> key{c.key, c.shape.batch, c.shape.key_heads, c.shape.keys, c.shape.depth, layout};
  Placed<S> value{c.value,      c.shape.batch,       c.shape.key_heads,
                  c.shape.keys, c.shape.value_depth, layout};

  Problem<S> problem() const {
    Problem<S> p;
    p.shape = c.shape;
    p.score = {c.score.family,     c.score.scale,
               pointer(c.vector),  c.shared_vector ? 0 : c.shape.depth,
               c.score.activation, c.score.negative_slope,
               c.score.soft_cap};
    p.scope = c.scope;
    if (!c.dense.empty()) p.bias.dense = c.dense_axes.view(c.shape, c.shape.keys, c.dense.data());
    p.bias.slopes = pointer(c.slopes);
    p.bias.slope_offset = c.slope_offset;
    if (!c.relative.empty())
      p.bias.relative = c.relative_axes.view(c.shape, c.relative_count, c.relative.data());
    p.bias.relative_count = c.relative_count;
    p.bias.relative_offset = c.relative_offset;
    p.bias.query_positions = pointer(c.query_positions);
    p.bias.key_positions = pointer(c.key_positions);
    p.bias.centres = pointer(c.centres);
    p.bias.widths = pointer(c.widths);
    p.bias.query_sums = pointer(c.query_sums);
    p.bias.key_sums = pointer(c.key_sums);
    p.bias.query_products = pointer(c.query_products);
    p.bias.key_products = pointer(c.key_products);
    p.bias.columns = pointer(c.columns);
    p.bias.product_columns = c.product_columns;
    const int64_t distances = c.shape.queries + c.shape.keys - 1;
    if (std::ssize(c.columns) > distances) p.bias.columns_stride = distances;
    if (!c.edges.empty()) {
      const int64_t columns = edge_scope(c.scope)->lists.longest(c.shape);
      p.bias.edges = c.edge_axes.view(c.shape, columns, c.edges.data());
    }
    p.sinks = pointer(c.sinks);
    p.normaliser = c.normaliser;
    p.alphas = pointer(c.alphas);
    p.top = c.top;
    p.dropout = c.dropout;
    p.query = query.input();
    p.key = key.input();
    p.value = value.input();
    return p;
  }
};

template <class S>
std::vector<S> random_numbers(int64_t count, double deviation, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<S> numbers;
  numbers.reserve(count);
  for (int64_t i = 0; i < count; ++i) numbers.push_back(stored<S>(normal(engine)));
  return numbers;
}

template <class S>
Case<S> random_case(const Shape& s, Family family, double deviation = 1, uint64_t seed = 1) {
  using C = Compute<S>;
  Case<S> c;
  c.shape = s;
  c.score.family = family;
  c.score.scale = 1 / std::sqrt(double(std::max<int64_t>(1, s.depth)));
  c.query = random_numbers<S>(s.batch * s.heads * s.queries * s.depth, deviation, seed);
  c.key = random_numbers<S>(s.batch * s.key_heads * s.keys * s.depth, deviation, seed + 1);
  c.value = random_numbers<S>(s.batch * s.key_heads * s.keys * s.value_depth, 1, seed + 2);
  if (family == Family::additive) c.vector = random_numbers<C>(s.heads * s.depth, 1, seed + 3);
  c.grad_context = random_numbers<S>(s.batch * s.heads * s.queries * s.value_depth, 1, seed + 4);
  c.grad_lse = random_numbers<C>(s.batch * s.heads * s.queries, 1, seed + 5);
  return c;
}

}  // namespace attend::kernels::testing
