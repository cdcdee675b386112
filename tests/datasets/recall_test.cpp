#include "attend/datasets/recall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "attend/base/files.h"
#include "attend/data/pairs.h"
#include "tests/support/files.h"

namespace attend {
namespace recall_test {

TEST(Recall, AsksForValuesOfItsPairs) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "recall.tsv";
  write_recall(path, {.count = 300, .pairs = 5, .least_pairs = 2, .queries = 3, .vocabulary = 7});
  const std::vector<Example> examples = read_pairs({path});
  ASSERT_EQ(examples.size(), 300U);
  std::set<size_t> sizes;
  for (const Example& example : examples) {
    std::istringstream words(example.source + ' ' + example.targets.at(0));
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    const size_t pairs = all.size() / 2 - 3;
    ASSERT_EQ(all.size(), 2 * (pairs + 3));
    sizes.insert(pairs);
    std::map<std::string, std::string> values;
    for (size_t i = 0; i < all.size(); i += 2) {
      EXPECT_EQ(all[i][0], 'k');
      EXPECT_LT(std::stoi(all[i].substr(1)), 7);
      if (i < 2 * pairs)
        EXPECT_TRUE(values.emplace(all[i], all[i + 1]).second);
      else
        EXPECT_EQ(all[i + 1], values.at(all[i]));
    }
  }
  EXPECT_EQ(sizes, (std::set<size_t>{2, 3, 4, 5}));
}

TEST(Recall, FollowsTheSeed) {
  const test::TemporaryFolder folder;
  const auto drawn = [&](int64_t seed) {
    const std::string path = folder / std::to_string(seed);
    write_recall(path, {.count = 20, .seed = seed});
    return read_file(path);
  };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
}

TEST(Recall, RefusesSizesOutOfRange) {
  const test::TemporaryFolder folder;
  for (const Recall& recall :
       {Recall{.count = 0}, Recall{.pairs = 0}, Recall{.queries = 0}, Recall{.vocabulary = 63},
        Recall{.least_pairs = 65}, Recall{.count = 100'000'001}})
    EXPECT_THAT(test::error_of([&] { write_recall(folder / "r", recall); }),
                testing::HasSubstr("[recall]"));
}

}  // namespace recall_test
}  // namespace attend
