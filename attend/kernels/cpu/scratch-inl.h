#pragma once

#include <cstddef>

// Scratch memory of the passes.

namespace attend::kernels {

struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
};

// Returns at least `bytes` bytes, aligned for vectors, with undefined contents; null and 0 if
// memory runs out. Any thread may give it back.
Scratch take_scratch(size_t bytes);
void give_back(Scratch scratch);

}  // namespace attend::kernels
