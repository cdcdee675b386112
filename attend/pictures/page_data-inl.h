#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/pictures/map_page.h"

namespace attend {

// The largest number of rows and of columns of a thumbnail.
inline constexpr int64_t kPageThumbnail = 64;

// Orders floats by magnitude, with what is not finite above every number.
int32_t magnitude_of(float weight);

// rows x columns numbers, each the one of the largest magnitude of its block of weights.
struct PooledMap {
  int64_t rows;
  int64_t columns;
  std::vector<float> weights;
};

PooledMap thumbnail_of(const PageHead& head);

// The largest magnitude of the finite weights; 0 without any.
float scale_of(const PageHead& head);

// Weights in a byte each, for pictures: 127 sqrt(|weight| / scale), rounded up, with the weight's
// sign; -128 where the weight is not finite.
void append_codes(std::string& bytes, const std::vector<float>& weights, float scale);

// What the page's script reads of a map. Numbers are little-endian and stored in planes, the first
// bytes of all of them, then the second ones and so on, which compress better. All weights: 4
// planes. The largest of each row: 3 planes of the differences between columns (from 0 at the start
// of a row), 4 of the weights, then the overview's codes.
std::string head_bytes(const PageHead& head, float scale);

// zlib's format, in base64.
std::string packed(std::string_view bytes);

}  // namespace attend
