#pragma once

#include <cstdint>

namespace torch::stable {

using Boxed = void (*)(uint64_t*, uint64_t, uint64_t);

class Library {
 public:
  Library& def(const char* schema);
  Library& impl(const char* name, Boxed function);
};

template <class Function>
Boxed boxed(Function function);

}  // namespace torch::stable

#define TORCH_BOX(function) torch::stable::boxed(function)
#define STABLE_TORCH_LIBRARY(name, library) \
  [[maybe_unused]] static void name##_definitions(torch::stable::Library& library)
#define STABLE_TORCH_LIBRARY_IMPL(name, key, library) \
  [[maybe_unused]] static void name##_##key(torch::stable::Library& library)
