#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/scopes.h"

// Functions shared by the conditions of a scope and the terms of a bias.

namespace attend {

template <class Kind, class... Arguments>
Scope one_condition(Arguments&&... arguments) {
  return {{{std::make_shared<Kind>(std::forward<Arguments>(arguments)...)}}};
}

// Limit of offsets, beyond the length of any sequence. It is half of `unbounded`, so that an
// unbounded reach stays unbounded at such an offset.
inline constexpr int64_t farthest_offset = unbounded / 2;

inline int64_t bounded(int64_t offset) {
  return std::clamp(offset, -farthest_offset, farthest_offset);
}

// A layout of blocks, bool [batch, heads, lines, key blocks]; see block_sparse(). `blocks` has the
// sizes, and not the layout itself.
ConditionPointer block_condition(at::Tensor layout, const kernels::BlockLayout& blocks);

// "Float of shape [2, 3]", for messages.
std::string described(const at::Tensor& tensor);

// Whether the tensor is int64 with one axis.
bool is_list(const at::Tensor& tensor);

bool broadcasts(const at::Tensor& x, at::IntArrayRef shape);

// Error unless x has one entry per batch entry; `name` is the name of x in messages.
void check_batch(const at::Tensor& x, const char* name, const Extent& extent);

// Returns entries first ... first + count - 1 of the axis; all remaining entries if count is
// `unbounded`. Error if one is missing. `name` is the name of x in messages; `parts` names the
// entries of the axis and the requested items.
at::Tensor narrowed(const at::Tensor& x, int64_t axis, int64_t first, int64_t count,
                    const char* name, const char* parts);

// Rows offset ... offset + queries - 1 of the axis (counted from the end). Returns x unchanged if
// the axis is missing or has one row.
at::Tensor rows_from(const at::Tensor& x, int64_t axis, int64_t offset, int64_t queries,
                     const char* name);

// Columns of these keys; x unchanged if it has one column.
at::Tensor columns_from(const at::Tensor& x, int64_t first, int64_t keys, const char* name);

// Inserts a head axis after the batch axis if x has `axes` axes, that is, none for heads.
at::Tensor with_axis_of_heads(const at::Tensor& x, int64_t axes);

// The last `axes` axes of one head of one batch entry; x broadcasts over missing axes.
at::Tensor of_one_head(const at::Tensor& x, int64_t axes, int64_t entry, int64_t head);

inline at::Tensor contiguous_on_cpu(const at::Tensor& x) {
  return contiguous_numbers(x.to(at::kCPU));
}

// Pointer to the numbers of a settled tensor, which `kept` keeps alive. A bool is a byte of 0 or 1.
template <class T>
const T* pointer_to_kept(const at::Tensor& x, std::vector<at::Tensor>& kept) {
  kept.push_back(x);
  return static_cast<const T*>(x.data_ptr());
}

}  // namespace attend
