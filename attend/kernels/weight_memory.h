#pragma once

#include <cstdint>
#include <memory>

namespace attend::kernels {

// Memory of weights, filled with zeros, from the start of a cache line on. Large blocks share huge
// pages if the system grants them: products of few rows read weights as fast as the memory gives
// them, and with small pages the processor also has to read an address per 4 KiB.
class WeightMemory {
 public:
  WeightMemory() = default;
  // Throws std::bad_alloc.
  explicit WeightMemory(int64_t bytes);

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }

 private:
  std::shared_ptr<char> data_;
};

}  // namespace attend::kernels
