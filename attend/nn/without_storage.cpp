#include "attend/nn/without_storage.h"

#include <ATen/ATen.h>
#include <torch/library.h>

namespace attend {
namespace {

using at::Tensor;
using Dtype = c10::optional<at::ScalarType>;
using Layout = c10::optional<at::Layout>;
using Device = c10::optional<at::Device>;
using Pinned = c10::optional<bool>;

// The key belongs to no backend and is dispatched before all backends, but only while a guard
// includes it. LibTorch reserves it for its own tests. A release without the key does not compile.
// If a release creates tensors by other operators than the two below, modules get storage; the test
// WithoutStorage.ModulesOfAnySizeTakeNothing detects this.
constexpr auto outline_key = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

// Every new tensor is created by one of these two operators.
Tensor empty(c10::SymIntArrayRef size, Dtype dtype, Layout layout, Device, Pinned,
             c10::optional<at::MemoryFormat> format) {
  const c10::impl::ExcludeDispatchKeyGuard past(outline_key);
  return at::empty_symint(size, dtype, layout, at::Device(at::kMeta), c10::nullopt, format);
}

Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, Dtype dtype,
                     Layout layout, Device, Pinned) {
  const c10::impl::ExcludeDispatchKeyGuard past(outline_key);
  return at::empty_strided_symint(size, stride, dtype, layout, at::Device(at::kMeta), c10::nullopt);
}

}  // namespace

WithoutStorage::WithoutStorage() : guard_(outline_key) {}

}  // namespace attend

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericWrapper, library) {
  library.impl("empty.memory_format", attend::empty);
  library.impl("empty_strided", attend::empty_strided);
}
