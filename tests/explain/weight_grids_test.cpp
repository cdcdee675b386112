#include "attend/explain/weight_grids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace attend {
namespace weight_grids_test {

using testing::HasSubstr;

TEST(WeightGrids, TakeAnyFloatingPointMap) {
  const at::Tensor map = at::tensor({0.5, 0.25, -1.0, 2.0, 0.0, 8.0}, at::kDouble).view({2, 3});
  for (const auto type : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    const WeightGrid grid = grid_of(map.t().contiguous().t().to(type).requires_grad_());
    EXPECT_EQ(grid.rows, 2);
    EXPECT_EQ(grid.columns, 3);
    EXPECT_THAT(grid.values, testing::ElementsAre(0.5, 0.25, -1, 2, 0, 8));
    EXPECT_EQ(grid.single, type != at::kDouble);
    EXPECT_EQ(tensor_of(grid).scalar_type(), type == at::kDouble ? at::kDouble : at::kFloat);
    EXPECT_TRUE(at::equal(tensor_of(grid).to(at::kDouble), map));
  }
}

TEST(WeightGrids, RefuseWhatIsNoMap) {
  EXPECT_THAT(test::error_of([] { grid_of(at::Tensor()); }), HasSubstr("no weights"));
  EXPECT_THAT(test::error_of([] {
                grid_of(at::zeros({2, 3}, at::kLong));
              }),
              HasSubstr("type Long"));
  EXPECT_THAT(test::error_of([] { grid_of(at::zeros({6})); }), HasSubstr("shape [6]"));
}

}  // namespace weight_grids_test
}  // namespace attend
