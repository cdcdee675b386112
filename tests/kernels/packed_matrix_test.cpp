#include "attend/kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "attend/base/error.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace packed_matrix_test {

std::vector<float> drawn(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& each : numbers) each = normal(random);
  return numbers;
}

// The numbers as a matrix of this type stores them.
std::vector<float> kept(std::vector<float> numbers, WeightType type) {
  if (type == WeightType::bfloat16)
    for (float& each : numbers) each = widen(narrow<BFloat16>(each));
  return numbers;
}

struct Layer {
  int64_t rows, columns, depth;
  WeightType type = WeightType::float32;
  std::vector<float> a = drawn(rows * depth, 1), weight = drawn(columns * depth, 2),
                     bias = drawn(columns, 3), before = drawn(rows * columns, 4);
  PackedMatrix matrix{weight.data(), bias.data(), columns, depth, type};

  // Rows [first, first + count) with padded columns, initialised from `before`.
  std::vector<float> products(int64_t first, int64_t count, bool relu, bool accumulate) const {
    const int64_t stride = matrix.padded_columns();
    std::vector<float> out(static_cast<size_t>(count * stride));
    for (int64_t r = 0; r < count; ++r)
      std::copy_n(before.data() + (first + r) * columns, columns, out.data() + r * stride);
    packed_products({.rows = count,
                     .matrix = &matrix,
                     .a = a.data() + first * depth,
                     .a_stride = depth,
                     .relu = relu,
                     .accumulate = accumulate,
                     .out = out.data(),
                     .out_stride = stride});
    return out;
  }

  void expect(bool relu, bool accumulate) const {
    const auto got = products(0, rows, relu, accumulate), multiplied = kept(weight, type);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        double want = bias[static_cast<size_t>(c)], size = std::abs(want);
        const auto add = [&](double term) { want += term, size += std::abs(term); };
        if (accumulate) add(before[static_cast<size_t>(r * columns + c)]);
        for (int64_t k = 0; k < depth; ++k)
          add(double{a[static_cast<size_t>(r * depth + k)]} *
              multiplied[static_cast<size_t>(c * depth + k)]);
        if (relu) want = std::max(0.0, want);
        // Every addition rounds once, and every product may.
        const double bound =
            2 * static_cast<double>(depth + 3) * std::numeric_limits<float>::epsilon() * size;
        ASSERT_NEAR(got[static_cast<size_t>(r * matrix.padded_columns() + c)], want, bound);
      }
    }
  }
};

std::vector<Layer> layers() {
  std::vector<Layer> all;
  for (const int64_t rows : {1, 5, 8, 67})
    for (const auto& [columns, depth] :
         {std::pair<int64_t, int64_t>{1, 1}, {32, 20}, {70, 33}, {64, 128}, {3, 300}})
      for (const WeightType type : {WeightType::float32, WeightType::bfloat16})
        all.push_back({rows, columns, depth, type});
  // Several parts of the depth, and more rows than blocks that read a panel one after another.
  for (const WeightType type : {WeightType::float32, WeightType::bfloat16}) {
    all.push_back({11, 40, 2100, type});
    all.push_back({300, 70, 33, type});
  }
  return all;
}

TEST(PackedProducts, AreThoseOfALayer) {
  on_every_target([] {
    for (const Layer& layer : layers()) {
      layer.expect(/*relu=*/false, /*accumulate=*/false);
      layer.expect(/*relu=*/true, /*accumulate=*/false);
      layer.expect(/*relu=*/false, /*accumulate=*/true);
    }
  });
}

std::vector<Layer> rounding_layers() {
  std::vector<Layer> all;
  auto some = layers();
  for (Layer& layer : some) {
    if (layer.type != WeightType::bfloat16) continue;
    all.push_back(std::move(layer));
    Layer& last = all.back();
    last.matrix = {last.weight.data(), last.bias.data(), last.columns,
                   last.depth,         last.type,        /*round_rows=*/true};
  }
  return all;
}

void expect_same_in_any_company(const std::vector<Layer>& some) {
  for (const Layer& layer : some) {
    const auto all = layer.products(0, layer.rows, false, true);
    const int64_t stride = layer.matrix.padded_columns();
    for (int64_t r = 0; r < layer.rows; ++r) {
      const auto alone = layer.products(r, 1, false, true);
      for (int64_t c = 0; c < layer.columns; ++c)
        ASSERT_EQ(alone[static_cast<size_t>(c)], all[static_cast<size_t>(r * stride + c)]);
    }
  }
}

TEST(PackedProducts, OfARowAreTheSameInAnyCompany) {
  on_every_target([] {
    expect_same_in_any_company(layers());
    expect_same_in_any_company(rounding_layers());
  });
}

// Float rows are rounded to bf16; bf16 numbers are exact.
TEST(PackedProducts, RoundRowsWhereTheProcessorMultipliesBFloat16) {
  on_every_target([] {
    auto all = rounding_layers();
    for (Layer& layer : all) {
      ASSERT_EQ(layer.matrix.rounded_rows(), bfloat16_kernels());
      for (const bool relu : {false, true}) {
        const auto of_floats = layer.products(0, layer.rows, relu, !relu);
        const auto floats = std::exchange(layer.a, kept(layer.a, WeightType::bfloat16));
        layer.expect(relu, /*accumulate=*/!relu);
        if (layer.matrix.rounded_rows() != nullptr) {
          ASSERT_EQ(layer.products(0, layer.rows, relu, !relu), of_floats);
        }
        layer.a = floats;
      }
    }
  });
}

// A non-finite number of a row reaches only this row, a non-finite weight only its column.
TEST(PackedProducts, TakeNumbersThatAreNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  on_every_target([] {
    for (const int64_t rows : {3, 67})
      for (const WeightType type : {WeightType::float32, WeightType::bfloat16})
        for (const float value : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
          Layer layer{rows, 33, 59, type};
          layer.a[static_cast<size_t>(layer.depth + 40)] = value;
          layer.weight[static_cast<size_t>(32 * layer.depth + 58)] = value;
          layer.matrix = {layer.weight.data(), layer.bias.data(), 33, 59, type};
          const auto got = layer.products(0, rows, false, false);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < layer.columns; ++c) {
              const float found = got[static_cast<size_t>(r * layer.matrix.padded_columns() + c)];
              ASSERT_EQ(std::isfinite(found), r != 1 && c != 32) << r << ' ' << c;
            }
        }
  });
}

// The largest floats round up, past the largest bf16 number.
TEST(PackedMatrix, RoundsWhatExceedsBFloat16ToInfinity) {
  const std::vector<float> weight = {std::numeric_limits<float>::max(), 0x1.fep127F};
  const PackedMatrix matrix(weight.data(), nullptr, 2, 1, WeightType::bfloat16);
  EXPECT_TRUE(std::isinf(widen(matrix.bfloat16_weights(0)[0])));
  EXPECT_EQ(widen(matrix.bfloat16_weights(0)[1]), 0x1.fep127F);
}

// A row as bytes from -127 to 127 with a scale, by the formula of WeightType::int8.
struct Bytes {
  std::vector<double> bytes;
  double scale = 0;

  Bytes(const float* x, int64_t count) : bytes(static_cast<size_t>(count)) {
    float largest = 0;
    for (int64_t k = 0; k < count; ++k) largest = std::max(largest, std::abs(x[k]));
    if (largest < 0x1p-100F) return;
    scale = largest / 127.0F;
    for (int64_t k = 0; k < count; ++k)
      bytes[static_cast<size_t>(k)] = std::nearbyint(x[k] * (127.0F / largest));
  }
};

struct ByteLayer {
  int64_t rows, columns, depth;
  std::vector<float> a = drawn(rows * depth, 1), weight = drawn(columns * depth, 2),
                     bias = drawn(columns, 3);

  std::vector<float> products(int64_t first, int64_t count) const {
    const PackedMatrix matrix(weight.data(), bias.data(), columns, depth, WeightType::int8);
    const int64_t stride = matrix.padded_columns();
    std::vector<float> out(static_cast<size_t>(count * stride));
    packed_products({.rows = count,
                     .matrix = &matrix,
                     .a = a.data() + first * depth,
                     .a_stride = depth,
                     .out = out.data(),
                     .out_stride = stride});
    std::vector<float> found;
    for (int64_t r = 0; r < count; ++r)
      found.insert(found.end(), out.begin() + r * stride, out.begin() + r * stride + columns);
    return found;
  }

  void expect() const {
    const auto got = products(0, rows);
    constexpr double epsilon = std::numeric_limits<float>::epsilon();
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = a.data() + r * depth;
      const Bytes left(row, depth);
      for (int64_t c = 0; c < columns; ++c) {
        const float* column = weight.data() + c * depth;
        const Bytes right(column, depth);
        double sum = 0, exact = 0, apart = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const auto index = static_cast<size_t>(k);
          sum += left.bytes[index] * right.bytes[index];
          exact += double{row[k]} * column[k];
          // Both sides have errors of up to half their scale.
          apart += std::abs(row[k]) * right.scale / 2 + std::abs(column[k]) * left.scale / 2 +
                   left.scale * right.scale / 4;
        }
        const double offset = bias[static_cast<size_t>(c)], scaled = sum * left.scale * right.scale;
        const double found = got[static_cast<size_t>(r * columns + c)];
        // The sum is converted to float, multiplied twice and added once.
        const double rounding = 2 * epsilon * (std::abs(scaled) + std::abs(offset)) + 1e-37;
        ASSERT_NEAR(found, scaled + offset, rounding) << rows << ' ' << columns << ' ' << depth;
        // Bytes are chosen from a rounded product, and numbers below 2^-100 count as 0.
        ASSERT_NEAR(found, exact + offset, apart * (1 + 256 * epsilon) + rounding + 1e-27);
      }
    }
  }
};

std::vector<ByteLayer> byte_layers() {
  std::vector<ByteLayer> all;
  for (const Layer& layer : layers())
    if (layer.type == WeightType::float32) all.push_back({layer.rows, layer.columns, layer.depth});
  all.push_back({9, 59, 111});
  // Rows and depths that fill tiles, some with a rest.
  all.push_back({49, 40, 704});
  all.push_back({131, 33, 64});
  return all;
}

TEST(BytePackedProducts, AreThoseOfTheRoundedNumbers) {
  on_every_target([] {
    for (const ByteLayer& layer : byte_layers()) layer.expect();
  });
}

TEST(BytePackedProducts, OfARowAreTheSameInAnyCompany) {
  on_every_target([] {
    for (const ByteLayer& layer : byte_layers()) {
      const auto all = layer.products(0, layer.rows);
      for (int64_t r = 0; r < layer.rows; ++r) {
        const auto begin = all.begin() + r * layer.columns;
        ASSERT_EQ(layer.products(r, 1), std::vector<float>(begin, begin + layer.columns));
      }
    }
  });
}

// The largest bytes on both sides, at the maximum depth.
TEST(BytePackedProducts, HoldTheDeepestSums) {
  on_every_target([] {
    ByteLayer layer{2, 3, PackedMatrix::deepest_bytes};
    std::fill(layer.a.begin(), layer.a.end(), 1.0F);
    std::fill(layer.weight.begin(), layer.weight.end(), -1.0F);
    layer.expect();
  });
}

TEST(BytePackedProducts, TakeZerosAndExtremeNumbers) {
  on_every_target([] {
    for (const float size : {0.0F, 1e-44F, 1e-30F, 1e-12F, 1e15F, 3e18F}) {
      ByteLayer layer{3, 33, 59};
      for (int64_t k = 0; k < layer.depth; ++k) {
        layer.a[static_cast<size_t>(layer.depth + k)] *= size;
        layer.weight[static_cast<size_t>(2 * layer.depth + k)] *= size;
      }
      layer.expect();
    }
  });
}

TEST(BytePackedProducts, OfARowThatIsNotFiniteAreNaN) {
  on_every_target([] {
    for (const float value :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()})
      for (const int64_t place : {0, 40, 58}) {
        ByteLayer layer{3, 33, 59};
        layer.a[static_cast<size_t>(layer.depth + place)] = value;
        const auto got = layer.products(0, 3);
        for (int64_t c = 0; c < 3 * layer.columns; ++c)
          ASSERT_EQ(std::isnan(got[static_cast<size_t>(c)]), c / layer.columns == 1);
      }
  });
}

TEST(BytePackedMatrix, RefusesADepthWhoseSumsItCannotHold) {
  const int64_t depth = PackedMatrix::deepest_bytes + 1;
  const std::vector<float> weight(static_cast<size_t>(depth));
  EXPECT_THROW(
      try {
        PackedMatrix(weight.data(), nullptr, 1, depth, WeightType::int8);
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "[packed matrix] sums of int8 products hold a depth of 131072, got 131073; "
                     "take float32");
        throw;
      },
      Error);
}

TEST(NormalisedRows, HaveTheMeanAndDeviationOfTheLayer) {
  on_every_target([] {
    for (const auto& [depth, centred] : {std::pair<int64_t, bool>{1, true},
                                         {20, true},
                                         {128, true},
                                         {131, true},
                                         {20, false},
                                         {131, false}}) {
      const int64_t rows = 3, stride = depth + 2;
      const auto x = drawn(rows * stride, 5), weight = drawn(depth, 6), bias = drawn(depth, 7);
      std::vector<float> got(x.size());
      normalise_rows({.rows = rows,
                      .depth = depth,
                      .stride = stride,
                      .x = x.data(),
                      .weight = weight.data(),
                      .bias = bias.data(),
                      .centred = centred,
                      .out = got.data()});
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * stride;
        double mean = 0, variance = 0;
        for (int64_t k = 0; centred && k < depth; ++k) mean += row[k] / static_cast<double>(depth);
        for (int64_t k = 0; k < depth; ++k)
          variance += (row[k] - mean) * (row[k] - mean) / static_cast<double>(depth);
        for (int64_t k = 0; k < depth; ++k) {
          const auto index = static_cast<size_t>(k);
          const double want =
              (row[k] - mean) / std::sqrt(variance + 1e-5) * weight[index] + bias[index];
          // Sums of `depth` terms near 1, divided by numbers down to 0.003.
          const double bound = static_cast<double>(depth + 8) * 1e-6 * (std::abs(want) + 1) /
                               (depth == 1 ? 0.003 : 1);
          ASSERT_NEAR(got[static_cast<size_t>(r * stride + k)], want, bound) << depth;
        }
      }
    }
  });
}

}  // namespace packed_matrix_test
}  // namespace attend::kernels::testing
