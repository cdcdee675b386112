#pragma once

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <type_traits>

#include "attend/kernels/storage.h"

// Passes tensors to code that reads them through a pointer.

namespace attend {

// Maps the types of the kernels to LibTorch's dtypes.
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

// Resolves a negation or conjugation that LibTorch has deferred. It is only a flag of the tensor;
// memory still holds the original numbers.
inline at::Tensor settled(const at::Tensor& x) {
  return x.is_neg() || x.is_conj() ? x.resolve_conj().resolve_neg() : x;
}

// Settled and contiguous.
inline at::Tensor contiguous_numbers(const at::Tensor& x) { return settled(x).contiguous(); }

// Error unless the tensor has this dtype and no deferred negation or conjugation.
void check_readable(const at::Tensor& x, at::ScalarType type);

// Pointer to the numbers of a settled tensor; null for an undefined one. Error unless they are
// stored as T.
template <class T>
T* pointer_of(const at::Tensor& x) {
  if (!x.defined()) return nullptr;
  check_readable(x, stored_type<std::remove_const_t<T>>);
  return static_cast<T*>(x.data_ptr());
}

// Whether LibTorch's autocast changes the dtypes of results on this thread.
bool autocast_enabled();

// Turns autocast off during its lifetime, which keeps the dtype of tensors made for the kernels.
class WithoutAutocast {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::autocast_dispatch_keyset};
};

// Whether the tensor carries a forward-mode derivative. False for an undefined tensor.
bool has_forward_gradient(const at::Tensor& x);

}  // namespace attend
