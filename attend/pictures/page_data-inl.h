#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/pictures/map_page.h"

namespace attend {

// Maximum rows and columns of a thumbnail.
inline constexpr int64_t kPageThumbnail = 64;

// Orders floats by magnitude; infinity and NaN are above every number.
int32_t magnitude_of(float weight);

// rows x columns weights, each the largest by magnitude in its block.
struct PooledMap {
  int64_t rows;
  int64_t columns;
  std::vector<float> weights;
};

PooledMap thumbnail_of(const PageHead& head);

// Returns the largest magnitude of the finite weights; 0 if there are none.
float scale_of(const PageHead& head);

// Appends one byte per weight, for pictures: 127 sqrt(|weight| / scale), rounded up, with the sign
// of the weight; -128 if the weight is not finite.
void append_codes(std::string& bytes, const std::vector<float>& weights, float scale);

// Returns the bytes of a map for the page's script. Numbers are little-endian and stored in planes,
// which compress better: the first bytes of all numbers, then the second bytes, and so on. If all
// weights are held: 4 planes. If only the largest are held: 3 planes of the differences between
// columns (from 0 in each row), 4 planes of the weights, then the codes of the overview.
std::string head_bytes(const PageHead& head, float scale);

// Compresses to zlib's format, in base64.
std::string packed(std::string_view bytes);

}  // namespace attend
