#include "attend/inference/vector_precision.h"

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

void check_length(size_t got, size_t wanted) {
  if (got != wanted)
    fail("[quantise] a vector has {} numbers, and the ranges {}; take vectors of one model", got,
         wanted);
}

// Float32 in the order of sentence-transformers, so that values are equal.
int32_t part_of(float number, float lowest, float highest) {
  const float step = (highest - lowest) / 255.0F;
  const float part = std::floor((number - lowest) / (step == 0 ? 1.0F : step));
  return static_cast<int32_t>(std::clamp(part, 0.0F, 255.0F));
}

std::vector<int32_t> packed_signs(const std::vector<float>& vector) {
  std::vector<int32_t> bytes((vector.size() + 7) / 8, 0);
  for (size_t i = 0; i < vector.size(); ++i)
    if (vector[i] > 0) bytes[i / 8] |= 128 >> i % 8;
  return bytes;
}

}  // namespace

void VectorRanges::add(const std::vector<float>& vector) {
  if (lowest.empty()) lowest = highest = vector;
  check_length(vector.size(), lowest.size());
  for (size_t i = 0; i < vector.size(); ++i) {
    lowest[i] = std::min(lowest[i], vector[i]);
    highest[i] = std::max(highest[i], vector[i]);
  }
}

std::vector<int32_t> quantised(const std::vector<float>& vector, VectorPrecision precision,
                               const VectorRanges& ranges) {
  if (precision == VectorPrecision::float32)
    fail("[quantise] float32 is not quantised; take int8, uint8, binary or ubinary");
  std::vector<int32_t> values;
  if (needs_ranges(precision)) {
    check_length(vector.size(), ranges.lowest.size());
    values.reserve(vector.size());
    for (size_t i = 0; i < vector.size(); ++i)
      values.push_back(part_of(vector[i], ranges.lowest[i], ranges.highest[i]));
  } else {
    values = packed_signs(vector);
  }
  if (precision == VectorPrecision::int8 || precision == VectorPrecision::binary)
    for (int32_t& value : values) value -= 128;
  return values;
}

std::vector<int32_t> quantised_unit(const std::vector<float>& vector, VectorPrecision precision) {
  if (!needs_ranges(precision)) return quantised(vector, precision);
  const int32_t zero = precision == VectorPrecision::uint8 ? 128 : 0;
  std::vector<int32_t> values;
  values.reserve(vector.size());
  for (const float number : vector)
    values.push_back(zero +
                     static_cast<int32_t>(std::lround(127 * std::clamp(number, -1.0F, 1.0F))));
  return values;
}

}  // namespace attend
