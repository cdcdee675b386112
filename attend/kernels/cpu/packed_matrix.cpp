#include "attend/kernels/packed_matrix.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/packed_matrix.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attend/base/error.h"
#include "attend/kernels/cpu/bfloat16-inl.h"
#include "attend/kernels/cpu/packed-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

HWY_INLINE void BeginRows(const float* bias, int64_t rows, bool accumulate,
                          const Rows<float>& out) {
  const Tag<float> d;
  for (int64_t r = 0; r < rows; ++r) {
    float* to = out.data + r * out.stride;
    for (int64_t c = 0; c < PackedMatrix::panel; c += kLanes<float>) {
      auto x = hn::LoadU(d, bias + c);
      if (accumulate) x = hn::Add(hn::LoadU(d, to + c), x);
      hn::StoreU(x, d, to + c);
    }
  }
}

HWY_INLINE void Rectify(int64_t rows, const Rows<float>& out) {
  const Tag<float> d;
  for (int64_t r = 0; r < rows; ++r) {
    float* to = out.data + r * out.stride;
    for (int64_t c = 0; c < PackedMatrix::panel; c += kLanes<float>) {
      const auto x = hn::LoadU(d, to + c);
      // NaN stays NaN.
      hn::StoreU(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x), d, to + c);
    }
  }
}

// Results of `rows` rows from sums of products [rows][panel], for the panel of columns from
// `column` on.
HWY_INLINE void FinishRows(const PackedProducts& p, const float* sums, int64_t row, int64_t rows,
                           int64_t column) {
  const Tag<float> d;
  const float* const bias = p.matrix->bias(column);
  for (int64_t r = 0; r < rows; ++r, sums += PackedMatrix::panel) {
    float* const to = p.out + (row + r) * p.out_stride + column;
    for (int64_t c = 0; c < PackedMatrix::panel; c += kLanes<float>) {
      auto x = hn::Add(hn::LoadU(d, sums + c), hn::LoadU(d, bias + c));
      if (p.accumulate) x = hn::Add(x, hn::LoadU(d, to + c));
      // NaN stays NaN.
      if (p.relu) x = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
      hn::StoreU(x, d, to + c);
    }
  }
}

// Fetches the memory of results while their sums are computed.
HWY_INLINE void FetchRows(const PackedProducts& p, int64_t row, int64_t rows, int64_t column) {
  constexpr int64_t line = 64 / sizeof(float);
  for (int64_t r = row; r < row + rows; ++r)
    for (int64_t c = column; c < column + PackedMatrix::panel; c += line)
      __builtin_prefetch(p.out + r * p.out_stride + c, /*rw=*/1, /*locality=*/2);
}

// PackedRows for a matrix with rounded rows. Sums stay in the first-level cache: rows of the
// results often lie in the same sets of it.
void RoundedRows(const PackedProducts& p) {
  const PackedMatrix& matrix = *p.matrix;
  const int64_t depth = matrix.pair_depth(), padded = WholeBFloat16Rows(p.rows);
  Arena<uint16_t> arena;
  uint16_t* const left = arena.take(padded * depth);
  PackLeft(p.a, p.a_stride, p.rows, matrix.depth(), padded, left, depth);
  ShareBlocks(matrix, p.rows,
              [&](int64_t row, int64_t rows, int64_t column, MemoryAhead& ahead) HWY_ATTR {
                HWY_ALIGN float sums[kPackedRows * PackedMatrix::panel];
                FetchRows(p, row, rows, column);
                matrix.rounded_rows()->multiply({.rows = WholeBFloat16Rows(rows),
                                                 .columns = PackedMatrix::panel,
                                                 .depth = depth,
                                                 .left = left + row * depth,
                                                 .left_stride = depth,
                                                 .right = matrix.pairs(column),
                                                 .right_stride = PackedMatrix::panel,
                                                 .out = sums,
                                                 .out_stride = PackedMatrix::panel,
                                                 .ahead = &ahead});
                FinishRows(p, sums, row, rows, column);
              });
}

void PackedRows(const PackedProducts& p) {
  const PackedMatrix& matrix = *p.matrix;
  if (matrix.rounded_rows() != nullptr) return RoundedRows(p);
  const LeftRows left(matrix, p.rows, p.a, p.a_stride);
  ShareBlocks(matrix, p.rows,
              [&](int64_t row, int64_t rows, int64_t column, MemoryAhead& ahead) HWY_ATTR {
                const Rows<float> out{p.out + row * p.out_stride + column, p.out_stride};
                BeginRows(matrix.bias(column), rows, p.accumulate, out);
                AddPanel(matrix, column, left, row, rows, out, &ahead);
                if (p.relu) Rectify(rows, out);
              });
}

// Sum of f(k) over the depth; `whole` computes f for a vector of indices, `one` for one index.
template <class Whole, class One>
HWY_INLINE float SumOver(int64_t depth, const Whole& whole, const One& one) {
  const Tag<float> d;
  auto sum = hn::Zero(d);
  int64_t k = 0;
  for (; k + kLanes<float> <= depth; k += kLanes<float>) sum = hn::Add(sum, whole(k));
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; k < depth; ++k) total += one(k);
  return total;
}

void NormaliseAll(const NormalisedRows& p) {
  const Tag<float> d;
  const auto count = static_cast<float>(p.depth);
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* x = p.x + r * p.stride;
    float* out = p.out + r * p.stride;
    const float mean = p.centred
                           ? SumOver(
                                 p.depth, [&](int64_t k) HWY_ATTR { return hn::LoadU(d, x + k); },
                                 [&](int64_t k) { return x[k]; }) /
                                 count
                           : 0.0F;
    const auto centre = hn::Set(d, mean);
    const float variance = SumOver(
                               p.depth,
                               [&](int64_t k) HWY_ATTR {
                                 const auto from = hn::Sub(hn::LoadU(d, x + k), centre);
                                 return hn::Mul(from, from);
                               },
                               [&](int64_t k) { return (x[k] - mean) * (x[k] - mean); }) /
                           count;
    const float scale = 1 / std::sqrt(variance + p.epsilon);
    const auto factor = hn::Set(d, scale);
    int64_t k = 0;
    for (; k + kLanes<float> <= p.depth; k += kLanes<float>) {
      const auto unit = hn::Mul(hn::Sub(hn::LoadU(d, x + k), centre), factor);
      hn::StoreU(hn::MulAdd(unit, hn::LoadU(d, p.weight + k), hn::LoadU(d, p.bias + k)), d,
                 out + k);
    }
    for (; k < p.depth; ++k) out[k] = (x[k] - mean) * scale * p.weight[k] + p.bias[k];
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(RoundToBytes);
HWY_EXPORT(PackedRows);
HWY_EXPORT(NormaliseAll);

PackedMatrix::PackedMatrix(const float* weight, const float* bias, int64_t columns, int64_t depth,
                           WeightType type, bool round_rows)
    : columns_(columns),
      depth_(depth),
      type_(type),
      kernels_(round_rows && type == WeightType::bfloat16 ? bfloat16_kernels() : nullptr) {
  if (type == WeightType::int8 && depth > deepest_bytes)
    fail("[packed matrix] sums of int8 products hold a depth of {}, got {}; take float32",
         deepest_bytes, depth);
  memory_ = WeightMemory(padded_columns() / panel * panel_bytes());
  bias_.resize(static_cast<size_t>(padded_columns()));
  if (bias != nullptr) std::copy_n(bias, columns, bias_.data());
  if (type == WeightType::float32) pack_numbers<float>(weight);
  if (type == WeightType::bfloat16 && kernels_ == nullptr) pack_numbers<BFloat16>(weight);
  if (kernels_ != nullptr) pack_pairs(weight);
  if (type == WeightType::int8) pack_bytes(weight);
}

int64_t PackedMatrix::panel_bytes() const {
  const int64_t depth = kernels_ != nullptr         ? pair_depth()
                        : type_ == WeightType::int8 ? byte_depth()
                                                    : depth_;
  return panel * depth * weight_size(type_);
}

template <class W>
void PackedMatrix::pack_numbers(const float* weight) {
  for (int64_t c = 0; c < columns_; ++c) {
    W* const to = column_of<W>(c);
    for (int64_t k = 0; k < depth_; ++k) {
      if constexpr (std::is_same_v<W, float>)
        to[k * panel] = weight[c * depth_ + k];
      else
        to[k * panel] = narrow<W>(weight[c * depth_ + k]);
    }
  }
}

void PackedMatrix::pack_pairs(const float* weight) {
  for (int64_t c = 0; c < columns_; ++c) {
    auto* const to = column_of<uint32_t>(c);
    for (int64_t k = 0; k < depth_; ++k)
      to[k / 2 * panel] |= uint32_t{narrow<BFloat16>(weight[c * depth_ + k]).bits} << k % 2 * 16;
  }
}

void PackedMatrix::pack_bytes(const float* weight) {
  scales_.resize(bias_.size());
  offsets_.resize(bias_.size());
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_depth()));
  for (int64_t c = 0; c < columns_; ++c) {
    const auto column = static_cast<size_t>(c);
    scales_[column] = HWY_DYNAMIC_DISPATCH(RoundToBytes)(weight + c * depth_, depth_, bytes.data());
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(byte - byte_zero);
      offsets_[column] += byte_zero * static_cast<int8_t>(byte);
    }
    auto* to = column_of<int32_t>(c);
    for (int64_t k = 0; k < byte_depth(); k += byte_group, to += panel)
      std::memcpy(to, bytes.data() + k, byte_group);
  }
}

void packed_products(const PackedProducts& problem) { HWY_DYNAMIC_DISPATCH(PackedRows)(problem); }

void normalise_rows(const NormalisedRows& problem) { HWY_DYNAMIC_DISPATCH(NormaliseAll)(problem); }

}  // namespace attend::kernels
#endif
