#include "attend/kernels/scope.h"

#include <gtest/gtest.h>

#include "tests/kernels/choices.h"

namespace attend::kernels::testing {
namespace scope_test {

void expect_tile(const BlockScope& block, const Scope& scope, const Row& first, int64_t rows,
                 int64_t begin, int64_t end) {
  int64_t allowed = 0;
  std::vector<uint8_t> mask((end - begin) * rows, 7);
  block.fill_mask(begin, end, rows, mask.data());
  for (int64_t j = begin; j < end; ++j) {
    for (int64_t r = 0; r < rows; ++r) {
      const bool want = sees(scope, {first.batch, first.head, first.query + r}, j);
      ASSERT_EQ(mask[(j - begin) * rows + r] != 0, want) << r << " " << j;
      allowed += want;
      if (want) {
        ASSERT_TRUE(block.hull().begin <= j && j < block.hull().end);
      }
      if (block.one_range()) {
        const KeyRange range = block.row_range(r);
        ASSERT_EQ(range.begin <= j && j < range.end, want);
      }
    }
  }
  const Cover cover = block.cover(begin, end);
  if (cover == Cover::empty) {
    EXPECT_EQ(allowed, 0);
  }
  if (cover == Cover::full) {
    EXPECT_EQ(allowed, (end - begin) * rows);
  }
}

TEST(Scope, TilesHoldWhatTheConditionsSay) {
  const Shape s{2, 1, 1, 100, 150, 1, 1};
  for (const ScopeChoice& choice : kScopes) {
    SCOPED_TRACE(choice.name);
    ScopeArrays arrays;
    const Scope scope = choice.make(s, arrays);
    for (const int64_t rows : {1, 7, 64}) {
      for (int64_t query = 0; query + rows <= s.queries; query += 12) {
        const Row first{query / 12 % 2, 0, query};
        const BlockScope block(scope, first, rows, s.keys);
        for (int64_t begin = 0; begin < s.keys; begin += 37)
          expect_tile(block, scope, first, rows, begin, std::min<int64_t>(begin + 37, s.keys));
      }
    }
  }
}

// If rows have distant centres, no row sees the tiles between them.
TEST(Scope, TilesBetweenCentresAreEmpty) {
  const double centres[] = {2, 900, 450};
  const Scope scope{{{Around{centres, 0, 0, 1, 3}}}};
  const BlockScope block(scope, {0, 0, 0}, 3, 1000);
  EXPECT_EQ(block.hull().begin, 0);
  EXPECT_EQ(block.hull().end, 904);
  for (int64_t begin = 0; begin < 1000; begin += 50) {
    const bool seen = begin == 0 || begin == 850 || begin == 900 || begin == 400 || begin == 450;
    EXPECT_EQ(block.cover(begin, begin + 50), seen ? Cover::partial : Cover::empty) << begin;
  }
}

// Decided by |j - c| in doubles; c - reach may round past the key at the border.
TEST(Scope, BordersAreThoseOfTheDistance) {
  const double centres[] = {-1e-20, 1e-20, 2 + 0x1p-51, 3 - 0x1p-51, 0x1p60, -0x1p60};
  for (const int64_t reach : {int64_t{0}, int64_t{1}, int64_t{5}, kUnbounded}) {
    const Scope scope{{{Around{centres, 0, 0, 1, reach}}}};
    for (int64_t i = 0; i < 6; ++i) {
      const KeyRange range = BlockScope(scope, {0, 0, i}, 1, 9).row_range(0);
      for (int64_t j = 0; j < 9; ++j)
        EXPECT_EQ(range.begin <= j && j < range.end, sees(scope, {0, 0, i}, j)) << i << " " << j;
    }
  }
}

TEST(Scope, IntersectionsAndUnions) {
  const Shape s{1, 1, 1, 20, 25, 1, 1};
  ScopeArrays x, y;
  for (const ScopeChoice& first : kScopes) {
    for (const ScopeChoice& second : kScopes) {
      const Scope a = first.make(s, x), b = second.make(s, y);
      const Scope both = intersect(a, b), either = unite(a, b);
      for (int64_t i = 0; i < s.queries; ++i) {
        for (int64_t j = 0; j < s.keys; ++j) {
          const Row row{0, 0, i};
          const bool in_a = sees(a, row, j), in_b = sees(b, row, j);
          ASSERT_EQ(sees(both, row, j), in_a && in_b) << first.name << " " << second.name;
          ASSERT_EQ(sees(either, row, j), in_a || in_b) << first.name << " " << second.name;
        }
      }
    }
  }
}

}  // namespace scope_test
}  // namespace attend::kernels::testing
