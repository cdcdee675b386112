#include "attend/runs/train_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/data/split.h"
#include "attend/files/image.h"
#include "tests/support/files.h"

namespace attend {
namespace train_data_test {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

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

struct Read {
  PairData data;
  std::vector<std::string> remarks;
};

Read read_pairs_of(TrainOptions options) {
  std::vector<std::string> remarks;
  PairData data = read_training_data(options, new_config(options),
                                     [&](const std::string& remark) { remarks.push_back(remark); });
  return {std::move(data), remarks};
}

// The hash of none of these sources chooses validation.
TEST(FewPairs, HoldOutAllPairsOfASource) {
  const test::TemporaryFolder folder;
  TrainOptions options;
  options.data = folder.write("pairs.tsv", "a\t1\nb\t2\nc\t3\na\t4\n");
  const PairData data = read_pairs_of(options).data;
  EXPECT_TRUE(data.held_out);
  ASSERT_FALSE(data.valid.examples.empty());
  EXPECT_EQ(data.train.examples.size() + data.valid.examples.size(), 4U);
  for (const Example& kept : data.train.examples)
    for (const Example& held : data.valid.examples) EXPECT_NE(kept.source, held.source);
  folder.write("pairs.tsv", "a\t1\na\t4\n");
  EXPECT_THAT(test::error_of([&] { read_pairs_of(options); }),
              HasSubstr("pairs.tsv: all examples have the source 'a', so none can be held out"));
  folder.write("pairs.tsv", "a b\tgood\nc d\tbad\n");
  options.assignments = {"model.type=classifier"};
  EXPECT_THAT(test::error_of([&] { read_pairs_of(options); }),
              HasSubstr("pairs.tsv without the examples held out for validation: every target"));
}

TEST(FewPairs, HoldOutATwentiethOfTheSources) {
  std::vector<std::string> keys;
  for (int count = 1; count <= 3000; ++count) {
    keys.push_back(fmt::format("w{}", count));
    if (count > 400 && count % 100 != 0) continue;
    const std::vector<bool> held = held_out(keys);
    const auto size = std::count(held.begin(), held.end(), true);
    EXPECT_GE(size, count == 1 ? 0 : std::min((count + 19) / 20, 6)) << count;
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool chosen = part_of(keys[i]) == Part::valid;
      EXPECT_TRUE(held[i] || !chosen || size == count - 1) << keys[i];
      EXPECT_TRUE(chosen || !held[i] || count < 1000) << keys[i];
    }
  }
  EXPECT_EQ(held_out({"dog", "dog"}), std::vector<bool>(2)) << "the hash chooses it";
}

TEST(UnreadableFiles, AreLeftOutBeforeTheSplit) {
  const test::TemporaryFolder folder;
  Image image{.height = 2, .width = 2, .pixels = std::string(4, '\x7f')};
  for (const std::string name : {"a.png", "b.png"}) folder.write(name, png_bytes(image));
  TrainOptions options;
  options.skip_bad = true;
  options.assignments = {"model.type=classifier", "data.source_units=image", "data.patch=1"};
  options.data = folder.write("one.tsv", "a.png\tx\nb.png\ty\na.png\tx\nb.png\ty\nnone.png\tx\n");
  EXPECT_THAT(test::error_of([&] { read_pairs_of(options); }), HasSubstr("every target"));
  options.valid = folder.write("other.tsv", "none.png\tx\n");
  EXPECT_THAT(test::error_of([&] { read_pairs_of(options); }),
              HasSubstr("other.tsv: none of its sources can be read"));
  options.valid = folder.write("other.tsv", "none.png\tx\na.png\tx\n");
  const Read read = read_pairs_of(options);
  EXPECT_EQ(read.data.left_out, 2);
  EXPECT_THAT(read.remarks, Contains(HasSubstr("one.tsv: 1 of 5 examples cannot be read")));
  EXPECT_THAT(read.remarks, Contains(HasSubstr("other.tsv: 1 of 2 examples cannot be read")));
}

TEST(NamesOfFiles, AreToldIfTheyAreReadAsTexts) {
  const test::TemporaryFolder folder;
  TrainOptions options;
  options.data = folder.write("pairs.tsv", "a.png\tx y\nb.png\ty x\n");
  EXPECT_THAT(read_pairs_of(options).remarks, Not(Contains(HasSubstr("name files"))));
  folder.write("b.png", png_bytes({.height = 1, .width = 1, .pixels = "a"}));
  EXPECT_THAT(read_pairs_of(options).remarks, Contains(HasSubstr("set data.source_units = image")));
}

TEST(Folders, WithoutPairsNameTheTypeOfModel) {
  const test::TemporaryFolder folder;
  TrainOptions options;
  options.data = folder / "";
  folder.write("train.txt", "a text\n");
  EXPECT_THAT(test::error_of([&] { read_pairs_of(options); }),
              HasSubstr("holds train.txt and no train.tsv; set model.type = lm or encoder"));
  folder.write("nodes.tsv", "a\ttrain\tx\n");
  EXPECT_THAT(test::error_of([&] { read_pairs_of(options); }),
              HasSubstr("holds nodes.tsv and no train.tsv; set model.type = graph"));
  options.source_column = "text";
  EXPECT_THAT(test::error_of([&] { read_pairs_of(options); }),
              AllOf(HasSubstr("is a folder"), HasSubstr("train.csv --valid")));
}

}  // namespace train_data_test
}  // namespace attend
