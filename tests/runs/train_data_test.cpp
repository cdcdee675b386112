#include "attend/runs/train_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/files.h"

namespace attend {
namespace train_data_test {

using testing::HasSubstr;

// One text for training and validation.
PairData read(const test::TemporaryFolder& folder, const std::string& name,
              const std::string& text) {
  TrainOptions options;
  options.data = folder.write(name, text);
  options.out = folder / "model";
  options.assignments = {"model.type=lm"};
  return read_training_data(options, new_config(options), [](const std::string&) {});
}

TEST(OneText, IsCutWhereALineBegins) {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "line\n";
  const PairData even = read(folder, "a.txt", text);
  EXPECT_EQ(even.text.size(), 90U);
  EXPECT_EQ(even.valid_text, "line\nline\n");
  // Nine tenths end within the last line but one, near its end or its beginning.
  const PairData late =
      read(folder, "a.txt", std::string(50, 'a') + "\n" + std::string(40, 'b') + "\nc\n");
  EXPECT_EQ(late.valid_text, "c\n");
  const PairData early =
      read(folder, "a.txt", std::string(88, 'a') + "\n" + std::string(8, 'b') + "\nc\n");
  EXPECT_EQ(early.valid_text, "bbbbbbbb\nc\n");
  const PairData long_last = read(folder, "a.txt", "a\n" + std::string(98, 'b') + "\n");
  EXPECT_EQ(long_last.text, "a\n") << "a line begins at one place only";
}

TEST(OneText, OfOneLineIsCutBeforeACharacter) {
  const test::TemporaryFolder folder;
  const PairData data = read(folder, "a.txt", std::string(8, 'x') + "\xc3\xa9\xc3\xa9\n");
  EXPECT_EQ(data.text + data.valid_text, "xxxxxxxx\xc3\xa9\xc3\xa9\n");
  EXPECT_EQ(data.valid_text, "\xc3\xa9\n");
}

TEST(OneText, OfFastaKeepsSequencesWhole) {
  const test::TemporaryFolder folder;
  const PairData data =
      read(folder, "p.fasta", ">a\nMKTAY\n>b\nMKV\n>c\n" + std::string(60, 'L') + "\n");
  EXPECT_EQ(data.text, "MKTAY\nMKV\n");
  EXPECT_EQ(data.valid_text, std::string(60, 'L') + "\n");
  EXPECT_THAT(test::error_of([&] { read(folder, "q.fasta", ">a\nMKTAYMKTAYMKTAY\n"); }),
              HasSubstr("q.fasta: is too short to set some aside for validation"));
}

// The hash of none of these sources chooses validation.
TEST(FewPairs, HoldOutTheSourceOfTheLastLine) {
  const test::TemporaryFolder folder;
  TrainOptions options;
  options.data = folder.write("pairs.tsv", "a\t1\nb\t2\nc\t3\na\t4\n");
  options.out = folder / "model";
  const auto read_pairs = [&] {
    return read_training_data(options, new_config(options), [](const std::string&) {});
  };
  const PairData data = read_pairs();
  EXPECT_EQ(data.train.examples.size(), 2U);
  ASSERT_EQ(data.valid.examples.size(), 2U);
  for (const Example& example : data.valid.examples) EXPECT_EQ(example.source, "a");
  folder.write("pairs.tsv", "a\t1\na\t4\n");
  EXPECT_THAT(test::error_of([&] { read_pairs(); }),
              HasSubstr("pairs.tsv: 2 examples are too few to set some aside"));
}

}  // namespace train_data_test
}  // namespace attend
