#pragma once

#include <cstdint>
#include <vector>

#include "attend/kernels/bfloat16_products.h"
#include "attend/kernels/storage.h"
#include "attend/kernels/weight_memory.h"

namespace attend::kernels {

// Storage type of the weights of a PackedMatrix. bfloat16: each weight is rounded to 8 significant
// bits, ties to even; products and sums are float. int8: w_ck = scale_c byte_ck within scale_c / 2,
// with scale_c the largest |w_ck| of a column / 127. Input rows are rounded in the same way, row by
// row, at run time. Sums of products of bytes are exact.
enum class WeightType { float32, bfloat16, int8 };

// In bytes.
constexpr int64_t weight_size(WeightType type) {
  return type == WeightType::float32 ? 4 : type == WeightType::bfloat16 ? 2 : 1;
}

// Weight and bias of a linear map in the order in which products read them, which makes memory
// access sequential. Panels of columns, each [depth][panel]; for bytes in groups of four, [depth /
// 4][panel]. The last panel is padded with zeros.
class PackedMatrix {
 public:
  static constexpr int64_t panel = 32;
  static constexpr int64_t byte_group = 4;           // adjacent bytes of a column
  static constexpr int64_t pair_group = 32;          // depth that bf16 products process at once
  static constexpr int32_t byte_zero = 128;          // byte of an input row that represents 0
  static constexpr int64_t deepest_bytes = 1 << 17;  // 127^2 times this is below 2^31

  PackedMatrix() = default;
  // weight: [columns, depth], contiguous, as in a layer; bias: [columns], or null for zeros. Error
  // for int8 with a depth above deepest_bytes. `round_rows` applies to bfloat16: input rows are
  // rounded to bfloat16, too, if bfloat16_kernels() are available at construction. Such a matrix is
  // only for packed_products().
  PackedMatrix(const float* weight, const float* bias, int64_t columns, int64_t depth,
               WeightType type = WeightType::float32, bool round_rows = false);
  PackedMatrix(PackedMatrix&&) = default;
  PackedMatrix& operator=(PackedMatrix&&) = default;
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  int64_t columns() const { return columns_; }
  int64_t depth() const { return depth_; }
  WeightType type() const { return type_; }
  // Columns rounded up to whole panels: the room that a product row needs.
  int64_t padded_columns() const { return (columns_ + panel - 1) / panel * panel; }

  // The columns from `column` (a multiple of panel) on: [depth][panel] and [panel].
  const float* weights(int64_t column) const { return panel_of<float>(column); }
  const BFloat16* bfloat16_weights(int64_t column) const { return panel_of<BFloat16>(column); }
  const float* bias(int64_t column) const { return bias_.data() + column; }

  // Kernels for input rows rounded to bfloat16; null: rows are floats. pairs() are the weights for
  // them: [pair_depth() / 2][panel], two numbers of a column per word, the even index in the lower
  // half, zeros after the depth.
  const BFloat16Kernels* rounded_rows() const { return kernels_; }
  int64_t pair_depth() const { return (depth_ + pair_group - 1) / pair_group * pair_group; }
  const uint32_t* pairs(int64_t column) const { return panel_of<uint32_t>(column); }

  // The same for bytes: [byte_depth() / byte_group][panel], zeros after the depth. Scales: [panel].
  // Offsets: sums over the depth of byte_zero byte_ck, [panel].
  int64_t byte_depth() const { return (depth_ + byte_group - 1) / byte_group * byte_group; }
  const int32_t* words(int64_t column) const { return panel_of<int32_t>(column); }
  const float* scales(int64_t column) const { return scales_.data() + column; }
  const int32_t* offsets(int64_t column) const { return offsets_.data() + column; }

  // Memory of the panel of columns from `column` on, in any of these forms.
  const char* panel_memory(int64_t column) const {
    return memory_.data() + column / panel * panel_bytes();
  }
  int64_t panel_bytes() const;

 private:
  template <class W>
  const W* panel_of(int64_t column) const {
    return reinterpret_cast<const W*>(panel_memory(column));
  }
  // First number of a column.
  template <class W>
  W* column_of(int64_t column) {
    return reinterpret_cast<W*>(memory_.data() + column / panel * panel_bytes()) + column % panel;
  }
  template <class W>
  void pack_numbers(const float* weight);
  void pack_bytes(const float* weight);
  void pack_pairs(const float* weight);

  int64_t columns_ = 0, depth_ = 0;
  WeightType type_ = WeightType::float32;
  const BFloat16Kernels* kernels_ = nullptr;
  WeightMemory memory_;  // the panels
  std::vector<float> bias_, scales_;
  std::vector<int32_t> offsets_;
};

// y_r = f(W a_r + b), or with `accumulate` y_r + W a_r + b: a layer with its activation, or with
// the residual sum. The bits of a row do not depend on other rows. With a byte matrix, a row counts
// as 0 if all its magnitudes are below 2^-100, and a row that is not finite gives NaN.
struct PackedProducts {
  int64_t rows = 0;
  const PackedMatrix* matrix = nullptr;
  const float* a = nullptr;  // row r at a + r * a_stride
  int64_t a_stride = 0;
  bool relu = false;        // f is max(0, x); otherwise f(x) = x
  bool accumulate = false;  // not supported with relu
  float* out = nullptr;     // row r at out + r * out_stride, with padded_columns() numbers
  int64_t out_stride = 0;
};

void packed_products(const PackedProducts& problem);

// Layer normalisation (Ba et al. 2016): y_r = (x_r - mean) / sqrt(variance + epsilon) * weight +
// bias, over `depth` numbers of each row. If not centred (Zhang & Sennrich 2019), the mean counts
// as 0, also in the variance. out may be x.
struct NormalisedRows {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t stride = 0;  // distance between rows of x and of out
  const float* x = nullptr;
  const float* weight = nullptr;  // [depth]
  const float* bias = nullptr;    // [depth]
  float epsilon = 1e-5F;
  bool centred = true;
  float* out = nullptr;
};

void normalise_rows(const NormalisedRows& problem);

}  // namespace attend::kernels
