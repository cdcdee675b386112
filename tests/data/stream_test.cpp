#include "attend/data/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace stream_test {

using test::error_of;
using testing::HasSubstr;

class Stream : public testing::Test {
 protected:
  // Examples 0 to 199 in three parts: a packed file, a plain file and a pair of files.
  Stream() {
    std::string first, second, sources, targets;
    for (int i = 0; i < 100; ++i) first += fmt::format("{}\tx{}\n", i, i);
    for (int i = 100; i < 150; ++i) second += fmt::format("{}\tx{}\n", i, i);
    for (int i = 150; i < 200; ++i) {
      sources += fmt::format("{}\n", i);
      targets += fmt::format("x{}\n", i);
    }
    files = {{folder.write("a.tsv", test::xz(first))},
             {folder.write("b.tsv", second)},
             {folder.write("s", sources + "no target\n"), folder.write("t", targets + "\n")}};
  }

  std::vector<int> order(int64_t buffer, uint64_t seed, int64_t epoch) const {
    ExampleStream stream(files, buffer, seed, epoch);
    std::vector<int> numbers;
    Example example;
    while (stream.next(example)) {
      EXPECT_EQ(example.targets, std::vector{"x" + example.source});
      numbers.push_back(std::stoi(example.source));
    }
    EXPECT_FALSE(stream.next(example));
    return numbers;
  }

  const test::TemporaryFolder folder;
  std::vector<PairFiles> files;
};

TEST_F(Stream, GivesEachExampleOnce) {
  std::vector<int> all(200);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order(1, 5, 0), all) << "a buffer of one keeps the order";
  for (const int64_t buffer : {2, 59, 200, 1000}) {
    auto numbers = order(buffer, 5, 0);
    EXPECT_NE(numbers, all) << buffer;
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(numbers, all) << buffer;
  }
}

TEST_F(Stream, IsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(order(50, 5, 1), order(50, 5, 1));
  EXPECT_NE(order(50, 5, 1), order(50, 5, 2));
  EXPECT_NE(order(50, 5, 1), order(50, 6, 1));
}

TEST_F(Stream, ReadsNoFurtherThanItsBuffer) {
  const auto numbers = order(10, 5, 0);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_LT(numbers[i], static_cast<int>(i) + 10) << i;
}

TEST_F(Stream, TellsAMissingFileAtOnceAndABadLineWhenItComes) {
  files.push_back({folder / "none"});
  EXPECT_THAT(error_of([&] { order(10, 5, 0); }), HasSubstr("none: no such file"));
  files.back() = {folder.write("bad.tsv", "a\tb\nbad\n")};
  ExampleStream stream(files, 1, 5, 0);
  Example example;
  for (int i = 0; i < 201; ++i) ASSERT_TRUE(stream.next(example));
  EXPECT_THAT(error_of([&] { stream.next(example); }), HasSubstr("bad.tsv:2: no TAB"));
  EXPECT_THAT(error_of([&] { ExampleStream(files, 0, 5, 0); }), HasSubstr("at least 1"));
}

}  // namespace stream_test
}  // namespace attend
