#pragma once

#include <cstdint>
#include <vector>

#include "attend/base/enum_names.h"

namespace attend {

// Type of the numbers of a text's vector. Names and values as in sentence-transformers.
enum class VectorPrecision {
  float32,
  int8,     // -128 to 127: 256 equal parts of the range of each number
  uint8,    // 0 to 255: the same parts
  binary,   // bytes from -128 to 127, each of the signs of 8 numbers, as for ubinary less 128
  ubinary,  // bytes from 0 to 255: positive numbers are 1, the first of 8 is the highest bit
};
inline EnumNames names_of(VectorPrecision) {
  return {"float32", "int8", "uint8", "binary", "ubinary"};
}

// Whether values depend on the ranges of other vectors.
inline bool needs_ranges(VectorPrecision precision) {
  return precision == VectorPrecision::int8 || precision == VectorPrecision::uint8;
}

// Smallest and largest value of each number over all vectors.
struct VectorRanges {
  std::vector<float> lowest, highest;

  // Includes a vector. Error if its length differs from earlier ones.
  void add(const std::vector<float>& vector);
};

// The values of a vector, one per number, or per 8 numbers for binary and ubinary; the last byte
// ends with zeros. Values outside of a range become its nearest end. Error for float32, and if
// ranges are needed and have another length.
std::vector<int32_t> quantised(const std::vector<float>& vector, VectorPrecision precision,
                               const VectorRanges& ranges = {});

// As above, for a vector of length 1, without ranges: int8 is 127 times each number, rounded, and
// uint8 the same plus 128. So the values depend on no other vector.
std::vector<int32_t> quantised_unit(const std::vector<float>& vector, VectorPrecision precision);

}  // namespace attend
