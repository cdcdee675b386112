#pragma once

#include <cstdint>
#include <vector>

#include "attend/kernels/bfloat16_products.h"
#include "attend/kernels/storage.h"

namespace attend::kernels {

// The type in which a PackedMatrix keeps its weights. As bfloat16, each is the nearest number of 8
// bits, ties to even; products and sums are of floats. As bytes, w_ck = scale_c byte_ck within
// scale_c / 2, with scale_c the largest |w_ck| of a column / 127; what they multiply is rounded so
// too, row by row, when it comes. Sums of products of bytes are exact.
enum class WeightType { float32, bfloat16, int8 };

// In bytes.
constexpr int64_t weight_size(WeightType type) {
  return type == WeightType::float32 ? 4 : type == WeightType::bfloat16 ? 2 : 1;
}

// The weight and bias of a linear map in the order in which products read them: panels of columns,
// each [depth][panel], or of bytes four by four [depth / 4][panel], so that a product runs through
// memory from one end to the other. Zeros fill the last panel.
class PackedMatrix {
 public:
  static constexpr int64_t panel = 32;
  static constexpr int64_t byte_group = 4;           // bytes of a column that lie side by side
  static constexpr int64_t pair_group = 32;          // what bf16 products take at once of a depth
  static constexpr int32_t byte_zero = 128;          // the byte of a row that stands for 0
  static constexpr int64_t deepest_bytes = 1 << 17;  // 127^2 of them, added up, are below 2^31

  PackedMatrix() = default;
  // weight [columns, depth], contiguous, as a layer has it; bias [columns], or null for zeros.
  // Error on bytes of a depth above deepest_bytes. With `round_rows` a matrix of bfloat16 is for
  // packed_products() alone and has the rows rounded to the nearest bfloat16, too, where the
  // processor multiplies such numbers: bfloat16_kernels() when it is made.
  PackedMatrix(const float* weight, const float* bias, int64_t columns, int64_t depth,
               WeightType type = WeightType::float32, bool round_rows = false);
  PackedMatrix(PackedMatrix&&) = default;
  PackedMatrix& operator=(PackedMatrix&&) = default;
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  int64_t columns() const { return columns_; }
  int64_t depth() const { return depth_; }
  WeightType type() const { return type_; }
  // Columns of whole panels: what a row of a product has room for.
  int64_t padded_columns() const { return (columns_ + panel - 1) / panel * panel; }

  // The columns from `column` on, which is a multiple of panel: [depth][panel] and [panel].
  const float* weights(int64_t column) const { return data_.data() + first_ + column * depth_; }
  const BFloat16* bfloat16_weights(int64_t column) const {
    return bfloat16_.data() + first_ + column * depth_;
  }
  const float* bias(int64_t column) const { return bias_.data() + column; }

  // By what rows that are rounded to bfloat16 are multiplied; null: rows are floats. The same of
  // such a matrix: [pair_depth() / 2][panel] with two numbers of a column in each word, the even
  // place in the lower half, zeros behind the depth.
  const BFloat16Kernels* rounded_rows() const { return kernels_; }
  int64_t pair_depth() const { return (depth_ + pair_group - 1) / pair_group * pair_group; }
  const uint32_t* pairs(int64_t column) const {
    return pairs_.data() + first_ + column * pair_depth() / 2;
  }

  // The same of bytes: [byte_depth() / byte_group][panel], zeros behind the depth; the scales
  // [panel] and the sums over the depth of byte_zero byte_ck [panel].
  int64_t byte_depth() const { return (depth_ + byte_group - 1) / byte_group * byte_group; }
  const int32_t* words(int64_t column) const {
    return words_.data() + first_ + column * byte_depth() / byte_group;
  }
  const float* scales(int64_t column) const { return scales_.data() + column; }
  const int32_t* offsets(int64_t column) const { return offsets_.data() + column; }

 private:
  template <class W>
  void pack_numbers(const float* weight, std::vector<W>& all);
  void pack_bytes(const float* weight);
  void pack_pairs(const float* weight);

  int64_t columns_ = 0, depth_ = 0;
  WeightType type_ = WeightType::float32;
  const BFloat16Kernels* kernels_ = nullptr;
  std::vector<float> data_, bias_, scales_;
  std::vector<BFloat16> bfloat16_;
  std::vector<int32_t> words_, offsets_;
  std::vector<uint32_t> pairs_;
  int64_t first_ = 0;  // where in data_, bfloat16_, words_ or pairs_ a line of the cache begins
};

// y_r = f(W a_r + b), or with `accumulate` y_r + W a_r + b: a layer with its activation, or with
// the sum around it. Each row is computed by itself: its bits do not depend on the rows beside it.
// With a matrix of bytes, the numbers of a row count as 0 where none reaches 2^-100, and a row that
// is not finite gives NaN.
struct PackedProducts {
  int64_t rows = 0;
  const PackedMatrix* matrix = nullptr;
  const float* a = nullptr;  // row r at a + r * a_stride
  int64_t a_stride = 0;
  bool relu = false;        // f is max(0, x), else f(x) = x
  bool accumulate = false;  // not with relu
  float* out = nullptr;     // row r at out + r * out_stride, with padded_columns() numbers
  int64_t out_stride = 0;
};

void packed_products(const PackedProducts& problem);

// y_r = (x_r - mean) / sqrt(variance + epsilon) * weight + bias (Ba et al. 2016), of each row of
// `depth` numbers by itself. out may be x.
struct NormalisedRows {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t stride = 0;  // between rows of x and of out
  const float* x = nullptr;
  const float* weight = nullptr;  // [depth]
  const float* bias = nullptr;    // [depth]
  float epsilon = 1e-5F;
  float* out = nullptr;
};

void normalise_rows(const NormalisedRows& problem);

}  // namespace attend::kernels
