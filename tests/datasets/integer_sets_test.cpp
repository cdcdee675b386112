#include "attend/datasets/integer_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "attend/base/files.h"
#include "attend/data/number_set.h"
#include "attend/data/pairs.h"
#include "tests/support/files.h"

namespace attend {
namespace integer_sets_test {

TEST(IntegerSets, HaveTheirMaxima) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "sets.tsv";
  write_integer_sets(path, {.count = 500, .maximum = 4, .largest = 9});
  const std::vector<Example> examples = read_pairs({path});
  ASSERT_EQ(examples.size(), 500U);
  std::set<size_t> sizes;
  std::set<double> numbers;
  for (const Example& example : examples) {
    const NumberSet set = parse_number_set(example.source);
    sizes.insert(set.elements.size());
    numbers.insert(set.numbers.begin(), set.numbers.end());
    EXPECT_EQ(std::stod(example.targets.at(0)),
              *std::max_element(set.numbers.begin(), set.numbers.end()));
  }
  EXPECT_EQ(sizes, (std::set<size_t>{1, 2, 3, 4}));
  EXPECT_EQ(numbers, (std::set<double>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(IntegerSets, FollowTheSeed) {
  const test::TemporaryFolder folder;
  const auto drawn = [&](int64_t seed) {
    const std::string path = folder / std::to_string(seed);
    write_integer_sets(path, {.count = 20, .seed = seed});
    return read_file(path);
  };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
}

TEST(IntegerSets, RefuseSizesOutOfRange) {
  const test::TemporaryFolder folder;
  for (const IntegerSets& sets : {IntegerSets{.count = 0}, IntegerSets{.maximum = 0},
                                  IntegerSets{.largest = 0}, IntegerSets{.count = 100'000'001}})
    EXPECT_THAT(test::error_of([&] { write_integer_sets(folder / "s", sets); }),
                testing::HasSubstr("[integer sets]"));
}

}  // namespace integer_sets_test
}  // namespace attend
