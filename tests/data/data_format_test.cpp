#include "attend/data/data_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/data/tables.h"
#include "tests/support/files.h"

namespace attend {
namespace data_format_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TextConfig text_of(DataFormat format) {
  TextConfig text;
  text.format = format;
  return text;
}

TEST(DataFormat, HasARowForEachValue) {
  ASSERT_EQ(data_formats().size(), names_of(DataFormat{}).size());
  EXPECT_FALSE(text_of(DataFormat::pairs).format_row().is_split());
  EXPECT_FALSE(text_of(DataFormat::interactions).format_row().is_folder());
  EXPECT_TRUE(text_of(DataFormat::graph).format_row().is_folder());
  for (const DataFormatRow& row : data_formats()) {
    EXPECT_EQ(&text_of(row.format).format_row(), &row);
    if (!row.is_split()) continue;
    EXPECT_NE(row.counts, nullptr);
    for (const std::string_view told :
         {row.wanted, row.parts, row.no_train, row.no_valid, row.no_test})
      EXPECT_FALSE(told.empty());
  }
}

TEST(DataFormat, SplitsInteractionsByTheirEnd) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("t.tsv", "u a\nu b\nu c\nu d\nv a\nv e\nw\n");
  const TextConfig text = text_of(DataFormat::interactions);
  EXPECT_THAT(test::error_of([&] { read_split({path}, text); }), HasSubstr("t.tsv:7"));
  int64_t bad = 0;
  const SplitData data = read_split({path}, text, {}, &bad);
  EXPECT_EQ(bad, 1);
  ASSERT_EQ(data.train.size(), 1U);
  EXPECT_EQ(data.train[0].targets[0], "a b") << "the whole history counts";
  EXPECT_EQ(data.valid[0].targets[0], "c");
  EXPECT_EQ(data.test.size(), 2U);
  EXPECT_EQ(data.graph, nullptr);
  EXPECT_THAT(text.format_row().counts(data),
              ElementsAre(Pair("users", 2), Pair("items", 5), Pair("interactions", 6),
                          Pair("max_interactions_per_user", 4), Pair("users_to_learn_from", 1)));
}

TEST(DataFormat, CountsTheNodesOfAGraph) {
  const test::TemporaryFolder folder;
  folder.write("nodes.tsv", "a\ttrain\tx\t3\nb\tvalid\ty\nc\ttest\tx\t1\nd\t-\t\nd\t-\t\n");
  folder.write("edges.tsv", "a b\na elsewhere\na c\n");
  const TextConfig text = text_of(DataFormat::graph);
  int64_t bad = 0;
  EXPECT_THAT(test::error_of([&] { read_split({folder.path()}, text, {}, &bad); }),
              HasSubstr("--skip-bad"));
  EXPECT_THAT(test::error_of([&] { read_split({folder.path() + "/nodes.tsv"}, text); }),
              HasSubstr("is not a folder; give the folder with nodes.tsv and edges.tsv"));
  EXPECT_THAT(test::error_of([&] {
                read_split({folder.path(), "t"}, text);
              }),
              HasSubstr("--target t: is for pairs, and data.format is graph"));
  std::vector<std::string> told;
  const DataFormatRow& row = text.format_row();
  const SplitData data = row.read(
      folder.path(), text, [&](const std::string& line) { told.push_back(line); }, &bad);
  EXPECT_EQ(bad, 2);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told[0], HasSubstr("nodes.tsv:5: node 'd' is in line 4 too"));
  EXPECT_THAT(told[1], HasSubstr("edges.tsv:2: node 'elsewhere' is not in nodes.tsv"));
  EXPECT_THAT(row.counts(data),
              ElementsAre(Pair("nodes", 4), Pair("nodes_to_learn_from", 1),
                          Pair("nodes_to_validate_with", 1), Pair("nodes_to_test_with", 1),
                          Pair("classes_to_learn", 1), Pair("nodes_of_other_classes", 1),
                          Pair("neighbours_of_all_nodes", 4), Pair("nodes_without_neighbours", 1),
                          Pair("features", 4), Pair("nodes_without_features", 2)));
}

TEST(DataFormat, ReadsTheTestFileOfAFolderOfPairs) {
  const test::TemporaryFolder folder;
  folder.write("test.tsv", "a\tb\n");
  const std::vector<Example> examples = read_examples({folder.path()}, TextConfig{});
  ASSERT_EQ(examples.size(), 1U);
  EXPECT_EQ(examples[0].source, "a");
}

}  // namespace data_format_test
}  // namespace attend
