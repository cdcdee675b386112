#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "attend/kernels/cpu/half_rows-inl.h"
#include "attend/kernels/cpu/plan-inl.h"
#include "attend/kernels/cpu/rows_ahead-inl.h"
#include "attend/kernels/recurrence.h"

// Plans of the linear recurrences. A task is one sequence of one head.

namespace attend::kernels {

// Tokens per product. Within a chunk, products cost chunk (depth + value_depth) per token in
// addition to the products with the state; 16 rows fill the registers of a product.
inline constexpr int64_t kChunk = 16;
// Tokens between two kept states. Backward recomputes the states within.
inline constexpr int64_t kSegment = 128;

// Rows of an array in any storage type, read and written in the type of the arithmetic.
template <class T>
class StoredRows {
 public:
  StoredRows() = default;
  template <class S>
  explicit StoredRows(const View<S>& view)
      : data_(reinterpret_cast<char*>(const_cast<std::remove_const_t<S>*>(view.data))),
        batch_bytes_(view.batch_stride * int64_t{sizeof(S)}),
        head_bytes_(view.head_stride * int64_t{sizeof(S)}),
        row_bytes_(view.row_stride * int64_t{sizeof(S)}),
        number_bytes_(sizeof(S)),
        stride_(view.row_stride),
        load_(&load_rows<std::remove_const_t<S>>),
        store_(&store_rows<std::remove_const_t<S>>) {}

  // to[r][c] = row first + r
  void load(int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t columns, T* to,
            int64_t to_stride) const {
    load_(row(batch, head, first), stride_, rows, columns, to, to_stride);
  }
  void store(const T* from, int64_t from_stride, int64_t batch, int64_t head, int64_t first,
             int64_t rows, int64_t columns) const {
    store_(from, from_stride, rows, columns, row(batch, head, first), stride_);
  }
  void fetch(int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t columns,
             RowsAhead& ahead) const {
    if (data_ == nullptr || rows <= 0) return;  // no address outside the array
    ahead.add(row(batch, head, first), row_bytes_, rows, columns * number_bytes_);
  }

 private:
  char* row(int64_t batch, int64_t head, int64_t first) const {
    return data_ + batch * batch_bytes_ + head * head_bytes_ + first * row_bytes_;
  }

  static void copy_rows(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to,
                        int64_t to_stride) {
    if (from_stride == columns && to_stride == columns) columns *= std::exchange(rows, 1);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(from + r * from_stride, columns, to + r * to_stride);
  }

  template <class S>
  static void load_rows(const void* from, int64_t stride, int64_t rows, int64_t columns, T* to,
                        int64_t to_stride) {
    const auto* data = static_cast<const S*>(from);
    if constexpr (std::is_same_v<S, T>) {
      copy_rows(data, stride, rows, columns, to, to_stride);
    } else {
      widen_block(RowBlock<const S>{data, stride}, rows, columns, RowBlock<T>{to, to_stride});
    }
  }

  template <class S>
  static void store_rows(const T* from, int64_t from_stride, int64_t rows, int64_t columns,
                         void* to, int64_t stride) {
    auto* data = static_cast<S*>(to);
    if constexpr (std::is_same_v<S, T>) {
      copy_rows(from, from_stride, rows, columns, data, stride);
    } else {
      narrow_block(RowBlock<const T>{from, from_stride}, rows, columns, RowBlock<S>{data, stride});
    }
  }

  char* data_ = nullptr;
  int64_t batch_bytes_ = 0, head_bytes_ = 0, row_bytes_ = 0, number_bytes_ = 0, stride_ = 0;
  void (*load_)(const void*, int64_t, int64_t, int64_t, T*, int64_t) = nullptr;
  void (*store_)(const T*, int64_t, int64_t, int64_t, void*, int64_t) = nullptr;
};

template <class T>
struct RecurrencePlan {
  RecurrenceShape shape;
  StoredRows<T> query, key, value, output;
  View<const T> decay, strength;
  const T* initial = nullptr;
  bool delta = false, normalise = false;
  T scale = 1, epsilon = 0;
  const int64_t* offsets = nullptr;
  int64_t sequences = 0, chunk = 0, segment = 0;
  T* last = nullptr;
  // Written by forward, read by backward: states, and with the delta rule u_t / b_t.
  T* kept = nullptr;
  StoredRows<T> kept_updates;
  // Backward only.
  StoredRows<T> grad_output, grad_query, grad_key, grad_value;
  const T* grad_last = nullptr;
  View<T> grad_decay, grad_strength;
  T* grad_initial = nullptr;

  int64_t tasks() const { return sequences * shape.heads; }
  int64_t state_size() const { return shape.depth * shape.value_depth; }
  // Rounded up for each sequence, no two sequences share an index.
  int64_t kept_per_head() const {
    return offsets == nullptr ? (shape.tokens + segment - 1) / segment
                              : shape.tokens / segment + sequences;
  }
  int64_t kept_states() const { return shape.batch * shape.heads * kept_per_head(); }
};

// The tokens of one task.
template <class T>
struct RecurrenceTokens {
  int64_t sequence, head, batch, key_head, first, count;
  int64_t kept;  // index of the first kept state

  RecurrenceTokens(const RecurrencePlan<T>& plan, int64_t task)
      : sequence(task / plan.shape.heads), head(task % plan.shape.heads) {
    const bool ragged = plan.offsets != nullptr;
    batch = ragged ? 0 : sequence;
    key_head = head / (plan.shape.heads / plan.shape.key_heads);
    first = ragged ? plan.offsets[sequence] : 0;
    count = ragged ? plan.offsets[sequence + 1] - first : plan.shape.tokens;
    const int64_t before = first / plan.segment + (ragged ? sequence : 0);
    kept = (batch * plan.shape.heads + head) * plan.kept_per_head() + before;
  }
};

template <class T>
using RecurrenceTask = void (*)(const RecurrencePlan<T>& plan, int64_t task, Arena<T>& arena);
template <class T>
RecurrenceTask<T> recurrence_forward_task();
template <class T>
RecurrenceTask<T> recurrence_backward_task();

}  // namespace attend::kernels
