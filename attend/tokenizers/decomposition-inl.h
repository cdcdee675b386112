#pragma once

#include <cstdint>
#include <vector>

namespace attend::internal {

// Decomposes code points as in normal form D or KD, with combining marks in canonical order.
class Decomposition {
 public:
  explicit Decomposition(bool compatible = false) : compatible_(compatible) {}

  void add(char32_t point);
  // Returns the decomposed and ordered points. Valid until the next change.
  const std::vector<int32_t>& ordered();
  bool empty() const { return points_.empty(); }
  void clear();

 private:
  bool compatible_;
  std::vector<int32_t> points_;
  std::vector<uint16_t> classes_;  // canonical combining class per point; 0: does not move
};

}  // namespace attend::internal
