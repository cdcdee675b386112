#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/kernels/cpu/plan-inl.h"

// Attention along edges. A panel of queries is scored edge by edge, each query with its own keys;
// tiles of unseen keys are never read. Vectors run along the depth. For the normalisers, the scores
// of a panel form a tile as elsewhere, one query per lane.

namespace attend::kernels {

// Edges of one query.
struct EdgeRow {
  const int64_t* keys;  // [known]: its own keys, followed by the keys of later queries
  int64_t count, known;
  int64_t first;  // index of its first edge in its list
};

template <class T>
struct EdgePlan {
  const Problem<T>* problem = nullptr;  // its rows may be read in whole vectors
  EdgeScope scope;
  int64_t columns = 0;  // edges of the longest list
  Result<T> result;
  Upstream<T> upstream;  // so may the rows of its grad_context
  Gradients<T> gradients;
  const EdgesByKey* by_key = nullptr;
  RowShifts<T> shifts;       // [batch, heads, queries], if backward needs them afterwards
  T* by_alpha = nullptr;     // [batch, heads, queries], if alphas have a gradient
  T* by_value = nullptr;     // [batch, heads, columns] factor of dc_i in dv_j, per edge
  T* by_score = nullptr;     // [batch, heads, columns] ds
  T* by_product = nullptr;   // the same before the soft cap
  T* vector_sums = nullptr;  // [batch, blocks, heads, depth], for the additive family
  SummaryPlan<T> summary = {};

  // Tasks of a pass over queries: blocks of kBackwardRows of one head.
  int64_t blocks() const { return (problem->shape.queries + kBackwardRows - 1) / kBackwardRows; }
  int64_t tasks() const { return problem->shape.batch * problem->shape.heads * blocks(); }
  Row first_row(int64_t task) const {
    const int64_t head = task / blocks(), heads = problem->shape.heads;
    return {head / heads, head % heads, task % blocks() * kBackwardRows};
  }

  // Tasks of the pass over keys: blocks of kTileKeys of one key head.
  int64_t key_blocks() const { return (problem->shape.keys + kTileKeys - 1) / kTileKeys; }
  int64_t key_tasks() const {
    return problem->shape.batch * problem->shape.key_heads * key_blocks();
  }

  EdgeRow edges(const Row& row) const {
    const EdgeLists& lists = scope.lists;
    const int64_t* ends = lists.row(row);
    const int64_t* list = ends - row.query;
    return {lists.keys + ends[0], ends[1] - ends[0], list[problem->shape.queries] - ends[0],
            ends[0] - list[0]};
  }

  int64_t index(const Row& row) const {
    return (row.batch * problem->shape.heads + row.head) * problem->shape.queries + row.query;
  }

  // Index of a list's first edge in by_value and by_score.
  int64_t list(int64_t batch, int64_t head) const {
    return (batch * problem->shape.heads + head) * columns;
  }
};

// Biases of single pairs of a query and a key.
template <class T>
class EdgeBias {
 public:
  explicit EdgeBias(const Problem<T>& problem) : bias_(problem.bias), shape_(problem.shape) {}

  bool any() const {
    return bias_.dense.data != nullptr || bias_.slopes != nullptr ||
           bias_.relative.data != nullptr || bias_.centres != nullptr ||
           bias_.edges.data != nullptr || bias_.query_sums != nullptr ||
           bias_.query_products != nullptr || bias_.key_products != nullptr;
  }

  // Adds the biases to a score, times `unit`; `edge` is the index of the edge in its list.
  T add(T score, const Row& row, int64_t key, int64_t edge, T unit) const {
    if (bias_.slopes != nullptr) score -= bias_.slopes[row.head] * unit * distance(row, key);
    if (bias_.dense.data != nullptr) score += unit * *dense(row, key);
    if (bias_.relative.data != nullptr) score += unit * *relative(row, key);
    if (bias_.centres != nullptr) {
      const T widths_away = gaussian(row, key).widths_away;
      score -= widths_away * widths_away * (unit / 2);
    }
    if (bias_.edges.data != nullptr) score += unit * *of_edge(row, edge);
    if (bias_.query_sums != nullptr)
      score -= unit * static_cast<T>(std::abs(sum_difference(row, key)));
    if (bias_.query_products != nullptr)
      score += unit * bias_.query_products[query_product(row, key)];
    if (bias_.key_products != nullptr) score += unit * bias_.key_products[key_product(row, key)];
    return score;
  }

  // Adds ds to the requested gradients.
  void differentiate(const Gradients<T>& to, const Row& row, int64_t key, int64_t edge,
                     T ds) const {
    if (to.slopes != nullptr) to.slopes[row.head] -= ds * distance(row, key);
    if (to.bias != nullptr) to.bias[dense(row, key) - bias_.dense.data] += ds;
    if (to.relative != nullptr) to.relative[relative(row, key) - bias_.relative.data] += ds;
    if (to.edges != nullptr) to.edges[of_edge(row, edge) - bias_.edges.data] += ds;
    if (to.query_products != nullptr) to.query_products[query_product(row, key)] += ds;
    if (to.key_products != nullptr) to.key_products[key_product(row, key)] += ds;
    if (to.query_sums != nullptr || to.key_sums != nullptr) {
      const double slope = sum_difference(row, key) > 0 ? -double{ds} : double{ds};
      if (to.query_sums != nullptr) to.query_sums[index(row)] += slope;
      if (to.key_sums != nullptr) to.key_sums[key_index(row, key)] -= slope;
    }
    if (to.centres == nullptr && to.widths == nullptr) return;
    // With z = (j - p_i) / width_i: dp_i = sum_j ds_ij z / width_i, dwidth_i = sum_j ds_ij z^2 /
    // width_i.
    const auto [widths_away, inverse] = gaussian(row, key);
    const T moment = ds * widths_away * inverse;
    if (to.centres != nullptr) to.centres[index(row)] += moment;
    if (to.widths != nullptr) to.widths[index(row)] += moment * widths_away;
  }

 private:
  struct Gaussian {
    T widths_away, inverse;
  };

  int64_t index(const Row& row) const {
    return (row.batch * shape_.heads + row.head) * shape_.queries + row.query;
  }
  int64_t key_index(const Row& row, int64_t key) const {
    return (row.batch * shape_.heads + row.head) * shape_.keys + key;
  }
  // Indices of the products of a pair.
  int64_t query_product(const Row& row, int64_t key) const {
    return index(row) * bias_.product_columns + column(row, key);
  }
  int64_t key_product(const Row& row, int64_t key) const {
    return key_index(row, key) * bias_.product_columns + column(row, key);
  }
  int64_t column(const Row& row, int64_t key) const {
    return bias_.columns[row.batch * bias_.columns_stride + key - row.query + shape_.queries - 1];
  }
  double sum_difference(const Row& row, int64_t key) const {
    return bias_.query_sums[index(row)] - bias_.key_sums[key_index(row, key)];
  }
  T distance(const Row& row, int64_t key) const {
    return std::abs(static_cast<T>(row.query + bias_.slope_offset - key));
  }
  const T* dense(const Row& row, int64_t key) const {
    return bias_.dense.row(row.batch, row.head, row.query) + key;
  }
  const T* relative(const Row& row, int64_t key) const {
    const int64_t ahead =
        (bias_.key_positions == nullptr ? key : bias_.key_positions[key]) -
        (bias_.query_positions == nullptr ? row.query : bias_.query_positions[row.query]);
    return bias_.relative.row(row.batch, row.head, row.query) +
           std::clamp<int64_t>(ahead + bias_.relative_offset, 0, bias_.relative_count - 1);
  }
  const T* of_edge(const Row& row, int64_t edge) const {
    return bias_.edges.row(row.batch, row.head, 0) + edge;
  }
  // Inverses are finite: a key at the centre is 0 widths away, even for the narrowest width.
  Gaussian gaussian(const Row& row, int64_t key) const {
    const int64_t place = index(row);
    const T inverse = std::min(1 / bias_.widths[place], std::numeric_limits<T>::max());
    return {(static_cast<T>(key) - bias_.centres[place]) * inverse, inverse};
  }

  const Bias<T>& bias_;
  const Shape& shape_;
};

template <class T>
using EdgeTask = void (*)(const EdgePlan<T>& plan, int64_t task, Arena<T>& arena);

// Code of this CPU's target. Backward passes over the queries first, then over the keys.
template <class T>
EdgeTask<T> edge_forward_task();
template <class T>
EdgeTask<T> edge_query_task();
template <class T>
EdgeTask<T> edge_key_task();
template <class T>
EdgeTask<T> edge_summary_task();

}  // namespace attend::kernels
