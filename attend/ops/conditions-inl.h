#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/scopes.h"

// What the conditions of a scope, and the terms of a bias, share.

namespace attend {

template <class Kind, class... Arguments>
Scope one_condition(Arguments&&... arguments) {
  return {{{std::make_shared<Kind>(std::forward<Arguments>(arguments)...)}}};
}

// No key is that far; a reach that is unbounded still is from there.
inline constexpr int64_t farthest_offset = unbounded / 2;

inline int64_t bounded(int64_t offset) {
  return std::clamp(offset, -farthest_offset, farthest_offset);
}

// "Float of shape [2, 3]", for messages.
std::string described(const at::Tensor& tensor);

// Whether it is int64 of one axis.
bool is_list(const at::Tensor& tensor);

bool broadcasts(const at::Tensor& x, at::IntArrayRef shape);

// Error unless x has an entry for each of the batch; `name` is what x is called.
void check_batch(const at::Tensor& x, const char* name, const Extent& extent);

// Places first ... first + count - 1 of the axis, all that are left where the count is unbounded.
// Error where one is missing: `name` is what x is called, `parts` what the axis has and what was
// asked for.
at::Tensor narrowed(const at::Tensor& x, int64_t axis, int64_t first, int64_t count,
                    const char* name, const char* parts);

// The rows offset ... offset + queries - 1 of that axis, counted from the back; all of it where it
// is missing or of one row.
at::Tensor rows_from(const at::Tensor& x, int64_t axis, int64_t offset, int64_t queries,
                     const char* name);

// The columns of those keys; all of it where there is one column.
at::Tensor columns_from(const at::Tensor& x, int64_t first, int64_t keys, const char* name);

// With an axis of heads behind that of the batch, where x has `axes` axes and so no heads yet.
at::Tensor with_axis_of_heads(const at::Tensor& x, int64_t axes);

// The last `axes` axes of one head of one batch entry: x broadcasts over what it has not.
at::Tensor of_one_head(const at::Tensor& x, int64_t axes, int64_t entry, int64_t head);

inline at::Tensor contiguous_on_cpu(const at::Tensor& x) {
  return contiguous_numbers(x.to(at::kCPU));
}

// Where the numbers of a settled tensor begin, which lives on in `kept`. A bool takes a byte of 0
// or 1.
template <class T>
const T* pointer_to_kept(const at::Tensor& x, std::vector<at::Tensor>& kept) {
  kept.push_back(x);
  return static_cast<const T*>(x.data_ptr());
}

}  // namespace attend
