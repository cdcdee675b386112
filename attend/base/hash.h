#pragma once

#include <cstdint>
#include <string_view>

namespace attend {

// Computes the 64-bit FNV-1a hash of a sequence of bytes or whole numbers.
class Fnv1a {
 public:
  void add(uint64_t number) { value_ = (value_ ^ number) * 1099511628211ULL; }
  void add_bytes(std::string_view bytes) {
    for (const char c : bytes) add(static_cast<unsigned char>(c));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 14695981039346656037ULL;
};

// Increment of the state of SplitMix64 (Steele et al. 2014) before each number.
constexpr uint64_t split_mix_step = 0x9e3779b97f4a7c15;

// Returns the SplitMix64 output for a state. Every output bit depends on every state bit.
constexpr uint64_t split_mix(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

}  // namespace attend
