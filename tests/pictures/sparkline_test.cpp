#include "attend/pictures/sparkline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace sparkline_test {

TEST(Sparkline, RisesFromTheLowestToTheHighest) {
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 20), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({-5, 5, -5}, 3), "▁█▁");
}

TEST(Sparkline, AveragesNeighboursWhereThereAreMany) {
  EXPECT_EQ(sparkline({0, 2, 7, 7, 15, 13}, 3), "▁▄█");  // means 1, 7, 14: 6/13 of the height
  const std::vector<double> many(100000, 3.0);
  EXPECT_EQ(sparkline(many, 2), "▅▅");
}

TEST(Sparkline, TakesWhatIsNotFiniteAndNothing) {
  EXPECT_EQ(sparkline({1, std::nan(""), 2, INFINITY}, 9), "▁ █ ");
  EXPECT_EQ(sparkline({}, 9), "");
  EXPECT_THROW(sparkline({1}, 0), Error);
}

}  // namespace sparkline_test
}  // namespace attend
