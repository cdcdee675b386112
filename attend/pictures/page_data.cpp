#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "attend/base/base64.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/page_data-inl.h"

namespace attend {
namespace {

void append_planes(std::string& bytes, const std::vector<uint32_t>& numbers, int planes) {
  for (int plane = 0; plane < planes; ++plane) {
    for (const uint32_t number : numbers)
      bytes.push_back(static_cast<char>((number >> (8 * plane)) & 0xFF));
  }
}

void append_weights(std::string& bytes, const std::vector<float>& weights) {
  std::vector<uint32_t> bits(weights.size());
  std::transform(weights.begin(), weights.end(), bits.begin(),
                 [](float weight) { return std::bit_cast<uint32_t>(weight); });
  append_planes(bytes, bits, 4);
}

std::vector<uint32_t> column_steps(const PageHead& head) {
  std::vector<uint32_t> steps(head.kept_columns.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool starts_row = i % static_cast<size_t>(head.kept) == 0;
    steps[i] =
        static_cast<uint32_t>(head.kept_columns[i] - (starts_row ? 0 : head.kept_columns[i - 1]));
  }
  return steps;
}

char code_of(float weight, float scale) {
  if (!std::isfinite(weight)) return static_cast<char>(-128);
  if (weight == 0) return 0;
  const double root = std::sqrt(std::abs(static_cast<double>(weight)) / scale);
  const int code = static_cast<int>(std::ceil(127 * std::min(root, 1.0)));
  return static_cast<char>(weight < 0 ? -code : code);
}

}  // namespace

int32_t magnitude_of(float weight) { return std::bit_cast<int32_t>(weight) & 0x7FFFFFFF; }

PooledMap thumbnail_of(const PageHead& head) {
  const bool whole = !head.weights.empty();
  const std::vector<float>& weights = whole ? head.weights : head.pooled;
  const int64_t rows = whole ? head.rows : head.pooled_rows;
  const int64_t columns = whole ? head.columns : head.pooled_columns;
  PooledMap map{std::min(rows, kPageThumbnail), std::min(columns, kPageThumbnail), {}};
  map.weights.assign(static_cast<size_t>(map.rows * map.columns), 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t to = row * map.rows / rows * map.columns;
    for (int64_t column = 0; column < columns; ++column) {
      const float weight = weights[static_cast<size_t>(row * columns + column)];
      float& pooled = map.weights[static_cast<size_t>(to + column * map.columns / columns)];
      if (magnitude_of(weight) > magnitude_of(pooled)) pooled = weight;
    }
  }
  return map;
}

float scale_of(const PageHead& head) {
  float scale = 0;
  for (const std::vector<float>* weights : {&head.weights, &head.kept_weights, &head.pooled}) {
    for (const float weight : *weights)
      if (std::isfinite(weight)) scale = std::max(scale, std::abs(weight));
  }
  return scale;
}

void append_codes(std::string& bytes, const std::vector<float>& weights, float scale) {
  for (const float weight : weights) bytes.push_back(code_of(weight, scale));
}

std::string head_bytes(const PageHead& head, float scale) {
  std::string bytes;
  append_weights(bytes, head.weights);
  append_planes(bytes, column_steps(head), 3);
  append_weights(bytes, head.kept_weights);
  append_codes(bytes, head.pooled, scale);
  return bytes;
}

std::string packed(std::string_view bytes) {
  if (bytes.size() > std::numeric_limits<uLong>::max() / 2)
    throw std::length_error("a map is too large to be compressed");
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string result(size, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(result.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()),
                               static_cast<uLong>(bytes.size()), Z_DEFAULT_COMPRESSION);
  if (status != Z_OK) throw std::runtime_error("zlib could not compress a map of a page");
  return base64_text(std::string_view(result).substr(0, size));
}

}  // namespace attend
