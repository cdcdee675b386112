#pragma once

#include <cstddef>

// Memory that the passes work in.

namespace attend::kernels {

struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
};

// At least so many bytes, aligned for vectors, contents undefined; null and 0: there is no memory.
// Any thread may give it back.
Scratch take_scratch(size_t bytes);
void give_back(Scratch scratch);

}  // namespace attend::kernels
