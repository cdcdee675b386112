#include "attend/kernels/row_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace row_products_test {

struct Matrices {
  int64_t rows, columns, depth;
  bool by_columns;
  std::vector<float> a = {}, b = {}, start = {};

  void draw() {
    std::mt19937_64 random(static_cast<uint64_t>(rows * 10007 + columns * 101 + depth));
    std::normal_distribution<float> normal;
    for (auto [to, size] : {std::pair{&a, rows * depth}, {&b, depth * columns}, {&start, columns}})
      for (int64_t i = 0; i < size; ++i) to->push_back(normal(random));
  }

  float left(int64_t r, int64_t k) const { return a[static_cast<size_t>(r * depth + k)]; }
  float right(int64_t k, int64_t c) const {
    return b[static_cast<size_t>(by_columns ? c * depth + k : k * columns + c)];
  }

  // `count` rows starting at `first`.
  std::vector<float> products(int64_t first, int64_t count, bool with_start = true) const {
    std::vector<float> out(static_cast<size_t>(count * columns));
    row_products({.rows = count,
                  .columns = columns,
                  .depth = depth,
                  .a = a.data() + first * depth,
                  .a_stride = depth,
                  .b = b.data(),
                  .b_stride = by_columns ? depth : columns,
                  .b_by_columns = by_columns,
                  .start = with_start ? start.data() : nullptr,
                  .out = out.data(),
                  .out_stride = columns});
    return out;
  }
};

std::vector<Matrices> all_matrices() {
  std::vector<Matrices> all;
  for (const bool by_columns : {false, true})
    for (const int64_t rows : {1, 3, 5, 8, 37, 70})
      for (const auto& [columns, depth] : {std::pair<int64_t, int64_t>{1, 1},
                                           {5, 3},
                                           {64, 128},
                                           {70, 33},
                                           {3, 300},
                                           {84, 130},
                                           {130, 16},
                                           {4, 0}})
        all.push_back({rows, columns, depth, by_columns});
  for (Matrices& each : all) each.draw();
  return all;
}

TEST(RowProducts, AreTheProducts) {
  on_every_target([] {
    for (const Matrices& m : all_matrices()) {
      const auto got = m.products(0, m.rows);
      for (int64_t r = 0; r < m.rows; ++r) {
        for (int64_t c = 0; c < m.columns; ++c) {
          double want = m.start[static_cast<size_t>(c)], size = std::abs(want);
          for (int64_t k = 0; k < m.depth; ++k) {
            want += double{m.left(r, k)} * m.right(k, c);
            size += std::abs(double{m.left(r, k)} * m.right(k, c));
          }
          // Every addition rounds once, and every product may.
          const double bound =
              2 * static_cast<double>(m.depth + 2) * std::numeric_limits<float>::epsilon() * size;
          ASSERT_NEAR(got[static_cast<size_t>(r * m.columns + c)], want, bound)
              << m.rows << " " << m.columns << " " << m.depth << " " << m.by_columns;
        }
      }
    }
  });
}

// A layer adds its bias inside or after the product, depending on the number of rows.
TEST(RowProducts, AddTheStartLast) {
  on_every_target([] {
    for (const Matrices& m : all_matrices()) {
      const auto with = m.products(0, m.rows),
                 without = m.products(0, m.rows, /*with_start=*/false);
      for (size_t i = 0; i < with.size(); ++i)
        ASSERT_EQ(with[i], without[i] + m.start[i % static_cast<size_t>(m.columns)]);
    }
  });
}

TEST(RowProducts, OfARowAreTheSameInAnyCompany) {
  on_every_target([] {
    for (const Matrices& m : all_matrices()) {
      const auto all = m.products(0, m.rows);
      for (int64_t r = 0; r < m.rows; ++r) {
        const auto alone = m.products(r, 1);
        for (int64_t c = 0; c < m.columns; ++c)
          ASSERT_EQ(alone[static_cast<size_t>(c)], all[static_cast<size_t>(r * m.columns + c)]);
      }
    }
  });
}

}  // namespace row_products_test
}  // namespace attend::kernels::testing
