#include "attend/kernels/bfloat16_products.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "attend/kernels/storage.h"

namespace attend::kernels {
namespace bfloat16_products_test {

class BFloat16Products : public ::testing::Test {
 protected:
  void SetUp() override {
    kernels_ = bfloat16_kernels();
    if (kernels_ == nullptr)
      GTEST_SKIP() << "this machine has no fast products of bf16, or refuses them";
    kernels_->begin();
  }
  void TearDown() override {
    if (kernels_ != nullptr) kernels_->end();
  }

  const BFloat16Kernels* kernels_ = nullptr;
};

struct Size {
  int64_t rows, columns, depth;
};
// Whole blocks of tiles and of vectors, and remainders.
constexpr Size kSizes[] = {{16, 16, 32},  {32, 32, 64}, {48, 80, 96},
                           {64, 16, 160}, {16, 64, 32}, {112, 80, 32}};

// A product on its own arrays, with gaps between rows.
struct Operands {
  std::vector<uint16_t> left;
  std::vector<uint32_t> right;
  std::vector<float> out;
  BFloat16Product product;

  explicit Operands(const Size& s) {
    product.rows = s.rows;
    product.columns = s.columns;
    product.depth = s.depth;
    product.left_stride = s.depth + 6;
    product.right_stride = s.columns + 3;
    product.out_stride = s.columns + 5;
    left.resize(s.rows * product.left_stride);
    right.resize(s.depth / 2 * product.right_stride);
    out.assign(s.rows * product.out_stride, 3);
    product.left = left.data();
    product.right = right.data();
    product.out = out.data();
  }

  uint16_t& left_at(int64_t r, int64_t k) { return left[r * product.left_stride + k]; }
  void set_right(int64_t k, int64_t c, BFloat16 x) {
    uint32_t& pair = right[k / 2 * product.right_stride + c];
    const int shift = k % 2 == 0 ? 0 : 16;
    pair = (pair & ~(0xffffU << shift)) | uint32_t{x.bits} << shift;
  }
  double right_at(int64_t k, int64_t c) const {
    const uint32_t pair = right[k / 2 * product.right_stride + c];
    return widen(BFloat16{static_cast<uint16_t>(k % 2 == 0 ? pair : pair >> 16)});
  }

  void fill(double deviation) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal(0, static_cast<float>(deviation));
    for (uint16_t& x : left) x = narrow<BFloat16>(normal(engine)).bits;
    for (uint32_t& x : right)
      x = narrow<BFloat16>(normal(engine)).bits | uint32_t{narrow<BFloat16>(normal(engine)).bits}
                                                      << 16;
  }

  // Returns the sum and the sum of the absolute values of its terms.
  std::pair<double, double> want(int64_t r, int64_t c) {
    double sum = 0, size = 0;
    for (int64_t k = 0; k < product.depth; ++k) {
      const double x = widen(BFloat16{left_at(r, k)}) * right_at(k, c);
      sum += x;
      size += std::abs(x);
    }
    return {sum, size};
  }
};

void expect_products(const BFloat16Kernels& kernels, const Size& size, double deviation) {
  for (const bool accumulate : {false, true}) {
    Operands operands(size);
    operands.fill(deviation);
    operands.product.accumulate = accumulate;
    operands.product.scale = accumulate ? 1 : -0.3F;
    kernels.multiply(operands.product);
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t c = 0; c < operands.product.out_stride; ++c) {
        const float got = operands.out[r * operands.product.out_stride + c];
        if (c >= size.columns) {
          ASSERT_EQ(got, 3) << "between the rows";
          continue;
        }
        const auto [sum, terms] = operands.want(r, c);
        const double before = accumulate ? 3 : 0, scale = operands.product.scale;
        // Each of `depth` additions and the scaling round a number of at most the sum of absolute
        // terms.
        const double bound =
            static_cast<double>(size.depth + 1) * 0x1p-24 * (terms + std::abs(before));
        ASSERT_NEAR(got, scale * (sum + before), std::abs(scale) * bound) << r << ", " << c;
      }
    }
  }
}

TEST_F(BFloat16Products, AreThoseOfALoop) {
  for (const Size& size : kSizes) {
    for (const double deviation : {1.0, 1e-15, 1e15}) {
      SCOPED_TRACE(::testing::Message() << size.rows << " x " << size.columns << ", depth "
                                        << size.depth << ", of " << deviation);
      expect_products(*kernels_, size, deviation);
    }
  }
}

// An infinity or NaN reaches only its row and its column.
TEST_F(BFloat16Products, KeepWhatIsNotFiniteToItsRowAndColumn) {
  Operands operands({32, 48, 64});
  operands.fill(1);
  operands.left_at(5, 33) = narrow<BFloat16>(std::numeric_limits<float>::infinity()).bits;
  operands.set_right(7, 40, narrow<BFloat16>(std::nanf("")));
  kernels_->multiply(operands.product);
  for (int64_t r = 0; r < 32; ++r) {
    for (int64_t c = 0; c < 48; ++c) {
      const float got = operands.out[r * operands.product.out_stride + c];
      if (c == 40) {
        EXPECT_TRUE(std::isnan(got)) << r;
      } else if (r == 5) {
        EXPECT_TRUE(std::isinf(got)) << c;
      } else {
        EXPECT_TRUE(std::isfinite(got)) << r << ", " << c;
      }
    }
  }
}

// Products that exceed float become infinite, not NaN; numbers below 2^-126 count as 0.
TEST_F(BFloat16Products, OverflowAndFlush) {
  Operands operands({16, 16, 32});
  operands.left_at(0, 0) = narrow<BFloat16>(1e30F).bits;
  operands.set_right(0, 0, narrow<BFloat16>(1e30F));
  operands.left_at(1, 1) = 1;  // the least positive number
  operands.set_right(1, 1, narrow<BFloat16>(1e30F));
  kernels_->multiply(operands.product);
  EXPECT_EQ(operands.out[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ(operands.out[operands.product.out_stride + 1], 0);
}

TEST_F(BFloat16Products, AreNotTakenWhereTheyAreNotAllowed) {
  allow_bfloat16_kernels(false);
  EXPECT_EQ(bfloat16_kernels(), nullptr);
  allow_bfloat16_kernels(true);
  EXPECT_EQ(bfloat16_kernels(), kernels_);
}

TEST_F(BFloat16Products, AreNotTakenBesideNarrowVectors) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(bfloat16_kernels() != nullptr, target == HWY_AVX3 || target == HWY_AVX3_DL);
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace bfloat16_products_test
}  // namespace attend::kernels
