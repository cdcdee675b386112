#pragma once

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <type_traits>

#include "attend/kernels/storage.h"

// How tensors are passed to code that reads them through a pointer.

namespace attend {

// How the kernels name what LibTorch stores.
template <class S>
inline constexpr at::ScalarType stored_type = at::ScalarType::Undefined;
template <>
inline constexpr at::ScalarType stored_type<float> = at::kFloat;
template <>
inline constexpr at::ScalarType stored_type<double> = at::kDouble;
template <>
inline constexpr at::ScalarType stored_type<kernels::BFloat16> = at::kBFloat16;
template <>
inline constexpr at::ScalarType stored_type<kernels::Float16> = at::kHalf;
template <>
inline constexpr at::ScalarType stored_type<int64_t> = at::kLong;

// The tensor without the negation or conjugation that LibTorch may have put off: only a mark of the
// tensor tells of it, and memory holds the numbers as they were.
inline at::Tensor settled(const at::Tensor& x) {
  return x.is_neg() || x.is_conj() ? x.resolve_conj().resolve_neg() : x;
}

// The same, one number after another.
inline at::Tensor contiguous_numbers(const at::Tensor& x) { return settled(x).contiguous(); }

// Error unless memory holds what the tensor says, in that dtype.
void check_readable(const at::Tensor& x, at::ScalarType type);

// Where the numbers of a settled tensor begin; null for one that is undefined. Error unless they
// are stored as T.
template <class T>
T* pointer_of(const at::Tensor& x) {
  if (!x.defined()) return nullptr;
  check_readable(x, stored_type<std::remove_const_t<T>>);
  return static_cast<T*>(x.data_ptr());
}

// Whether LibTorch's autocast changes the dtype of the results of this thread's operations.
bool autocast_enabled();

// Turns autocast off during its lifetime: tensors made for the kernels keep one dtype.
class WithoutAutocast {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::autocast_dispatch_keyset};
};

// Whether a forward-mode derivative is taken by it. False for an undefined tensor.
bool has_forward_gradient(const at::Tensor& x);

}  // namespace attend
