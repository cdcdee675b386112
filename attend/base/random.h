#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

// std::shuffle and std::uniform_int_distribution differ between standard libraries; these do not.
namespace attend::internal {

inline std::mt19937_64 generator(uint64_t seed, int64_t epoch) {
  const auto number = static_cast<uint64_t>(epoch);
  std::seed_seq sequence{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                         static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
  return std::mt19937_64(sequence);
}

// Uniform from 0 to count - 1.
inline uint64_t draw_below(uint64_t count, std::mt19937_64& random) {
  // Draws above the last multiple of `count` would favour small numbers.
  const uint64_t limit = std::numeric_limits<uint64_t>::max() / count * count;
  uint64_t draw = random();
  while (draw >= limit) draw = random();
  return draw % count;
}

template <class Element>
void shuffle(std::vector<Element>& elements, std::mt19937_64& random) {
  for (uint64_t left = elements.size(); left > 1; --left)
    std::swap(elements[left - 1], elements[draw_below(left, random)]);
}

}  // namespace attend::internal
