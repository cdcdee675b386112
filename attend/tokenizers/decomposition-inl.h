#pragma once

#include <cstdint>
#include <vector>

namespace attend::internal {

// Code points taken apart as normal forms D and KD have it, their marks in order.
class Decomposition {
 public:
  explicit Decomposition(bool compatible = false) : compatible_(compatible) {}

  void add(char32_t point);
  // The points that were added, apart and in order, until the next change.
  const std::vector<int32_t>& ordered();
  bool empty() const { return points_.empty(); }
  void clear();

 private:
  bool compatible_;
  std::vector<int32_t> points_;
  std::vector<uint16_t> classes_;  // of each; 0 where it does not move
};

}  // namespace attend::internal
