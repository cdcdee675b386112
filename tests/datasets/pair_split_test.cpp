#include "attend/datasets/pair_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "attend/data/source_key.h"
#include "attend/data/source_kind.h"
#include "attend/files/image.h"
#include "tests/support/files.h"

namespace attend {
namespace pair_split_test {

using test::contents;
using test::error_of;
using testing::HasSubstr;

std::string lines_of(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += fmt::format("s{}\t{}\ns{}\tagain\n", i, i, i);
  return lines;
}

TEST(PairSplit, DrawsTenthsOfTheSources) {
  const test::TemporaryFolder folder;
  const std::string all = folder.write("all.tsv", lines_of(50));
  const auto tables = split_pairs({.files = {all}, .folder = folder / "a"});
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_EQ(tables[0].examples, 80);
  EXPECT_EQ(tables[1].examples, 10);
  EXPECT_EQ(tables[2].examples, 10);
  std::multiset<std::string> lines;
  for (const WrittenTable& table : tables) {
    EXPECT_EQ(table.path, folder / ("a/" + table.name + ".tsv"));
    const auto pairs = read_pairs({table.path});
    for (size_t i = 0; i < pairs.size(); i += 2) {
      EXPECT_EQ(pairs[i].source, pairs[i + 1].source) << "a source is in one part";
      lines.insert(pairs[i].source);
    }
  }
  EXPECT_EQ(lines.size(), 50U);
  split_pairs({.files = {all}, .folder = folder / "b"});
  split_pairs({.files = {all}, .folder = folder / "c", .seed = 2});
  EXPECT_EQ(contents(folder / "a/test.tsv"), contents(folder / "b/test.tsv"));
  EXPECT_NE(contents(folder / "a/test.tsv"), contents(folder / "c/test.tsv"));
}

TEST(PairSplit, SpellingsOfAMoleculeAreInOnePart) {
  const test::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 30; ++i) {
    const std::string chain(static_cast<size_t>(i), 'C');
    lines += "c1ccccc1" + chain + "\t1\nC1=CC=CC=C1" + chain + "\t1\n[H]" + chain + "c1ccccc1\t0\n";
  }
  const std::string all = folder.write("all.tsv", lines);
  std::vector<std::string> told;
  const Tell tell = [&](const std::string& remark) { told.push_back(remark); };
  for (const std::string units : {"molecule", "smiles"}) {
    PairSplit split{.files = {all}, .folder = folder / units};
    split.text.source_units = units;
    std::map<std::string, std::set<std::string>> parts;
    for (const WrittenTable& table : split_pairs(split, tell)) {
      EXPECT_EQ(table.examples, table.name == "train" ? 72 : 9);
      for (const Example& pair : read_pairs({table.path}))
        parts[source_key(pair.source, split.text)].insert(table.name);
    }
    EXPECT_EQ(parts.size(), 30U);
    for (const auto& [key, names] : parts) EXPECT_EQ(names.size(), 1U) << key;
  }
  EXPECT_TRUE(told.empty());
  split_pairs({.files = {all}, .folder = folder / "texts"}, tell);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr(": 60 sources are other spellings of molecules in it"));
  split_pairs({.files = {folder.write("t.tsv", lines_of(20))}, .folder = folder / "t"}, tell);
  EXPECT_EQ(told.size(), 1U) << "texts";
  PairSplit bad{.files = {folder.write("bad.tsv", "CC\t1\nC1C\t2\n")}, .folder = folder / "bad"};
  bad.text.source_units = "molecule";
  EXPECT_THAT(error_of([&] { split_pairs(bad); }), HasSubstr("bad.tsv:2: SMILES 'C1C'"));
}

TEST(PairSplit, ReadsPartsFromAColumn) {
  const test::TemporaryFolder folder;
  const std::string table =
      folder.write("t.csv", "part,y,x\ntest,1,a\ntrain,2,b\nvalid,3,c\ntrain,4,d\n");
  PairSplit split{.files = {table, "", "x", "y"}, .folder = folder / "out", .column = "part"};
  split_pairs(split);
  EXPECT_EQ(contents(folder / "out/train.tsv"), "b\t2\nd\t4\n");
  EXPECT_EQ(contents(folder / "out/valid.tsv"), "c\t3\n");
  EXPECT_EQ(contents(folder / "out/test.tsv"), "a\t1\n");
}

TEST(PairSplit, NamesFilesFromTheNewFolder) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "tables/pics");
  std::string lines = "part,file,shape\n";
  for (const std::string part : {"train", "valid", "test"}) {
    folder.write("tables/pics/" + part + " 1.png",
                 png_bytes({.height = 1, .width = 1, .pixels = "a"}));
    lines += fmt::format("{0},pics/{0} 1.png,x\n", part);
  }
  lines += "train,/no/where.png,x\n";
  const std::string table = folder.write("tables/t.csv", lines);
  PairSplit split{
      .files = {table, "", "file", "shape"}, .folder = folder / "out/new/", .column = "part"};
  split_pairs(split);
  EXPECT_EQ(contents(folder / "out/new/train.tsv"),
            "../../tables/pics/train 1.png\tx\n/no/where.png\tx\n");
  for (const std::string part : {"valid", "test"}) {
    std::vector<Example> pairs = read_pairs({fmt::format("{}/{}.tsv", split.folder, part)});
    place_sources(pairs, *source_kind("image"), split.folder + "train.tsv");
    EXPECT_TRUE(std::filesystem::exists(pairs[0].source)) << pairs[0].source;
  }
  split.folder = folder / "tables";
  split_pairs(split);
  EXPECT_EQ(contents(folder / "tables/valid.tsv"), "pics/valid 1.png\tx\n");
}

TEST(PairSplit, ReplacesNoFileOfTheUser) {
  const test::TemporaryFolder folder;
  const std::string table = folder.write("t.csv", "part,y,x\ntest,1,a\ntrain,2,b\nvalid,3,c\n");
  std::filesystem::create_directory(folder / "out");
  const std::string own = folder.write("out/valid.tsv", "my own\tline\n");
  PairSplit split{.files = {table, "", "x", "y"}, .folder = folder / "out", .column = "part"};
  EXPECT_THAT(error_of([&] { split_pairs(split); }),
              HasSubstr("out/valid.tsv: exists with other contents"));
  EXPECT_EQ(contents(own), "my own\tline\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "out/train.tsv"));
  std::filesystem::remove(own);
  split_pairs(split);
  split_pairs(split);  // the same contents again
  EXPECT_EQ(contents(own), "c\t3\n");
}

TEST(PairSplit, WritesNothingOfWhatCannotBeSplit) {
  const test::TemporaryFolder folder;
  const auto reason = [&](const std::string& bytes, const std::string& column) {
    PairSplit split{.files = {folder.write("t.csv", bytes), "", "x", "y"},
                    .folder = folder / "out",
                    .column = column};
    return error_of([&] { split_pairs(split); });
  };
  EXPECT_THAT(reason("part,y,x\nhere,1,a\n", "part"),
              HasSubstr("column 'part' has 'here' for 'a'; it must have train, valid or test"));
  EXPECT_THAT(reason("part,y,x\ntrain,1,a\n", "part"), HasSubstr("leave valid empty"));
  EXPECT_THAT(reason("y,x\n1,a\n", ""), HasSubstr("leave valid empty"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace pair_split_test
}  // namespace attend
