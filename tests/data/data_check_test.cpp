#include "attend/data/data_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/base64.h"
#include "attend/base/files.h"
#include "attend/files/image.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace data_check_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

class DataCheck : public testing::Test {
 protected:
  FileSummary check(const std::string& text) {
    return check_data({{folder.write("f", text)}}).files[0];
  }
  const test::TemporaryFolder folder;
};

TEST_F(DataCheck, MeasuresLengths) {
  // Sources of 1 to 101 words "é", targets one word shorter: the median is 51.
  std::string text;
  for (int i = 0; i <= 100; ++i) {
    const int words = 1 + i * 37 % 101;
    for (int word = 0; word < words; ++word) text += word == 0 ? "é" : " é";
    text += '\t';
    for (int word = 0; word < words; ++word) text += word == 0 ? "x" : word == 1 ? "" : " x";
    text += '\n';
  }
  const FileSummary file = check(test::gzip(text));
  EXPECT_TRUE(file.pairs);
  EXPECT_EQ(file.lines, 101);
  EXPECT_EQ(file.source.words.median, 51);
  EXPECT_EQ(file.source.words.percent_90, 91);
  EXPECT_EQ(file.source.words.percent_99, 100);
  EXPECT_EQ(file.source.words.longest, 101);
  EXPECT_EQ(file.source.words.longest_line, 31) << "30 * 37 % 101 = 100";
  EXPECT_EQ(file.source.characters.longest, 201);
  EXPECT_EQ(file.target.words.longest, 100);
  EXPECT_THAT(file.labels, IsEmpty());
}

TEST_F(DataCheck, CountsRepetitions) {
  const FileSummary file = check("a\tx\nb\ty\na\tx\na\tz\n");
  EXPECT_EQ(file.repeated, 1);
  EXPECT_EQ(file.several_targets, 1);
  EXPECT_THAT(file.odd, IsEmpty());
}

TEST_F(DataCheck, LeavesOutBlankLinesAtTheEnd) {
  const FileSummary file = check("a\tx\nb\ty\n\n \n");
  EXPECT_EQ(file.lines, 2);
  EXPECT_THAT(file.odd, IsEmpty());
}

TEST_F(DataCheck, PointsOutOddLines) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("the line {} here\tdie Zeile {} da\n", i, i);
  text += "no tab\nbad \xff\tx\n \tx\nsame one\tsame one\n=== 12 --- *** !!\tx y z\n";
  text += "one word\t" + std::string(20, 'a');
  for (int i = 0; i < 19; ++i) text += " word";
  text += "\nlong\t" + std::string(400, 'l') + "\n";
  const FileSummary file = check(text);
  std::vector<std::pair<std::string, std::vector<int64_t>>> found;
  for (const OddLines& odd : file.odd) found.emplace_back(odd.kind, odd.lines);
  EXPECT_THAT(found,
              ElementsAre(Pair("malformed", ElementsAre(21, 22)), Pair("empty", ElementsAre(23)),
                          Pair("long", ElementsAre(27)), Pair("uneven", ElementsAre(26)),
                          Pair("no_letters", ElementsAre(25)), Pair("unchanged", ElementsAre(24))));
  EXPECT_THAT(file.odd[0].example, HasSubstr(":21: no TAB; each line is a source, a TAB"));
  EXPECT_EQ(file.odd[0].count, 2);
}

TEST_F(DataCheck, ReadsPlainText) {
  const FileSummary file = check("one two\n\none two\n");
  EXPECT_FALSE(file.pairs);
  EXPECT_EQ(file.repeated, 1);
  EXPECT_THAT(file.odd, IsEmpty()) << "texts may have blank lines";
}

TEST_F(DataCheck, PointsOutObjectsOfJson) {
  const FileSummary file =
      check("{\"text\": \"one long line\"}\n{text}\n{\"text\": \"another line\"}\n");
  EXPECT_FALSE(file.pairs);
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_EQ(file.odd[0].kind, "json");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(1, 3));
}

TEST_F(DataCheck, TakesAFileNamedTsvForPairs) {
  const FileSummary file = check_data({{folder.write("t.tsv", "no tab\na\tb\n")}}).files[0];
  EXPECT_TRUE(file.pairs);
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_THAT(file.odd[0].lines, ElementsAre(1));
  EXPECT_THAT(file.odd[0].example, HasSubstr("t.tsv:1: no TAB"));
}

TEST_F(DataCheck, CountsLabels) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += fmt::format("text {}\t{}\n", i, i % 3 == 0 ? "bad" : "good");
  const std::string train = folder.write("train", text);
  EXPECT_THAT(check_data({{train}}).files[0].labels,
              ElementsAre(Pair("good", 20), Pair("bad", 10)));
  std::string other;
  for (int i = 20; i < 40; ++i)
    other += fmt::format("text {}\t{}\n", i, i % 2 == 0 ? "bad" : "fair");
  const DataSummary both = check_data({{train}, {folder.write("test", other)}});
  ASSERT_EQ(both.overlaps.size(), 1u);
  const Overlap& overlap = both.overlaps[0];
  EXPECT_EQ(overlap.sources, 10);
  // Texts 20 to 29: "bad" there if divisible by 3, here if divisible by 2.
  EXPECT_EQ(overlap.pairs, 1) << "24 alone";
  EXPECT_THAT(overlap.examples, ElementsAre("text 20", "text 21", "text 22"));
  EXPECT_THAT(overlap.new_labels, ElementsAre("fair"));
}

TEST_F(DataCheck, ReadsTwoFilesAsPairs) {
  const std::string source = folder.write("s", "a b\n\xff\nc\n"),
                    target = folder.write("t", "x\ny\nz\n");
  const FileSummary file = check_data({{source, target}}).files[0];
  EXPECT_TRUE(file.pairs);
  EXPECT_EQ(file.lines, 3);
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_THAT(file.odd[0].example, HasSubstr("s:2: invalid UTF-8"));
  const std::string shorter = folder.write("u", "x\n");
  EXPECT_THAT(error_of([&] { check_data({{source, shorter}}); }), HasSubstr("fewer lines"));
}

TEST_F(DataCheck, RefusesFilesWithoutExamples) {
  for (const char* text : {"", "\n \n", "\n"})
    EXPECT_THAT(error_of([&] { check(text); }), HasSubstr("is empty; each line is a source"));
  const std::string table = folder.write("t.csv", "text,label\n");
  EXPECT_THAT(error_of([&] {
                check_data({{table, "", "text", "label"}});
              }),
              HasSubstr("is empty; a row for each example"));
}

TEST_F(DataCheck, PointsOutQuotesOfCsv) {
  const char* text = "\"he said \"\"wow\"\"\"\tx\n\"a b\"\ty\nan \"\" c\t\"\"\n";
  const FileSummary file = check(text);
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_EQ(file.odd[0].kind, "quoted");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(1));
  const std::string table = folder.write("t.csv", "a,b\n\"\"\"\"\"wow\"\"\"\"\",x\n");
  EXPECT_THAT(check_data({{table, "", "a", "b"}}).files[0].odd, IsEmpty());
}

TEST_F(DataCheck, StopsAtEmptySidesOnlyIfTrainingDoes) {
  const std::string source = folder.write("s", "a b\n\nc\n"),
                    target = folder.write("t", "x\ny\n\n");
  const FileSummary files = check_data({{source, target}}).files[0];
  ASSERT_EQ(files.odd.size(), 1u);
  EXPECT_EQ(files.odd[0].kind, "empty");
  EXPECT_THAT(files.odd[0].lines, ElementsAre(2, 3));
  EXPECT_THAT(files.odd[0].remedy, HasSubstr("leaves them out"));
  EXPECT_FALSE(files.odd[0].stops_training);
  const FileSummary file = check("a b\tx\n\ty\nc\t\n");
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_THAT(file.odd[0].lines, ElementsAre(2, 3));
  EXPECT_TRUE(file.odd[0].stops_training);
}

TEST_F(DataCheck, ReadsCsvAsPairs) {
  std::string text = "id,text,stars\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("{},\"so,\nso {}\",{}\n", i, i, i % 2);
  const std::string path = folder.write("t.csv", text + "1,2\n21,,0\n22,x,\xff\n23,\"y,1\n");
  const FileSummary file = check_data({{path, "", "text", "stars"}}).files[0];
  EXPECT_TRUE(file.pairs);
  EXPECT_THAT(file.columns, ElementsAre("text", "stars"));
  EXPECT_EQ(file.lines, 24);
  EXPECT_THAT(file.labels, ElementsAre(Pair("0", 10), Pair("1", 10)));
  EXPECT_EQ(file.source.words.longest, 3);
  ASSERT_EQ(file.odd.size(), 2u);
  EXPECT_EQ(file.odd[0].kind, "malformed");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(42, 44, 45));
  EXPECT_THAT(file.odd[0].example, HasSubstr("t.csv:42: has 2 fields, the header 3"));
  EXPECT_EQ(file.odd[1].kind, "empty");
  EXPECT_THAT(file.odd[1].lines, ElementsAre(43));
}

TEST_F(DataCheck, ReadsTheImagesThatSourcesName) {
  write_file(folder / "a.png", png_bytes({2, 3, std::string(6, 'x')}));
  write_file(folder / "b.PNG", png_bytes({3, 2, std::string(6, 'x')}));
  folder.write("c.png", "no picture");
  const FileSummary file = check_data({{folder.write("t.tsv",
                                                     "a.png\t1\nb.PNG\t2\nc.png\t1\n"
                                                     "none.png\t2\na.png\t2\n")}})
                               .files[0];
  EXPECT_EQ(file.media, 3);
  ASSERT_EQ(file.odd.size(), 2u);
  EXPECT_EQ(file.odd[0].kind, "unreadable");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(3, 4));
  EXPECT_THAT(file.odd[0].example, HasSubstr("c.png: is neither a PNG nor a JPEG"));
  EXPECT_EQ(file.odd[1].kind, "other_form");
  EXPECT_THAT(file.odd[1].lines, ElementsAre(2));
}

TEST_F(DataCheck, ReadsTheSoundsThatSourcesName) {
  folder.write("a.wav", "no sound");
  const std::string text = folder.write("t.tsv", "a.wav\tone\nb.flac\ttwo\n");
  const FileSummary file = check_data({{text}}).files[0];
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_EQ(file.odd[0].kind, "unreadable");
  EXPECT_EQ(file.odd[0].count, 2);
  EXPECT_THAT(check("a.wav\tx\nwords\ty\n").odd, IsEmpty()) << "texts; one names a sound";
}

TEST_F(DataCheck, ReadsImagesBesideALineThatNamesNone) {
  write_file(folder / "a.png", png_bytes({2, 3, std::string(6, 'x')}));
  folder.write("c.png", "no picture");
  const FileSummary file =
      check_data({{folder.write("t.tsv", "a.png\t1\nc.png\t2\nnotes.txt\t1\n")}}).files[0];
  EXPECT_EQ(file.media, 1);
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_EQ(file.odd[0].kind, "unreadable");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(2, 3));
}

TEST_F(DataCheck, ReadsAllImagesOfASet) {
  write_file(folder / "a.png", png_bytes({2, 3, std::string(6, 'x')}));
  write_file(folder / "b.png", png_bytes({3, 2, std::string(6, 'x')}));
  const FileSummary file =
      check_data({{folder.write("t.tsv", "a.png a.png\t2\na.png none.png\t2\na.png b.png\t2\n")}})
          .files[0];
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_EQ(file.odd[0].kind, "unreadable");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(2, 3));
}

TEST_F(DataCheck, NamesImagesWithTransparentPixels) {
  // One pixel of grey 255 and alpha 0, written by Pillow.
  folder.write("clear.png",
               base64_bytes("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR4nGP4"
                            "zwAAAgEBADK6K5IAAAAASUVORK5CYII="));
  write_file(folder / "a.png", png_bytes({1, 1, "x"}));
  const FileSummary file =
      check_data({{folder.write("t.tsv", "a.png\t1\nclear.png\t2\n")}}).files[0];
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_EQ(file.odd[0].kind, "transparent");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(2));
}

// A file without bad lines, from which training can learn nothing.
TEST_F(DataCheck, SaysWhyNothingCanBeLearned) {
  TextConfig text;
  const auto fault = [&](const char* lines) {
    return check_data({{folder.write("t.tsv", lines)}}, text).files[0].fault;
  };
  EXPECT_THAT(fault("a b\tgood\nc d\tgood\n"),
              HasSubstr("t.tsv: every target is made of the one token 'good'"));
  EXPECT_EQ(fault("a b\tgood\nc d\tbad\n"), "");
  EXPECT_EQ(fault("no TAB\n"), "") << "the line is reported";
  text.target = TargetKind::labels;
  EXPECT_THAT(fault("a b\t\nc d\t\n"), HasSubstr("t.tsv: holds no targets to learn from"));
  EXPECT_THAT(fault("a b\tred\nc d\t\n"), HasSubstr("the one token 'red'"));
  EXPECT_EQ(fault("a b\tred|blue\nc d\t\n"), "");
  text.target = TargetKind::number;
  EXPECT_THAT(fault("a\t5\nb\t5.0\n"), HasSubstr("the number 5, so the deviation is 0"));
  EXPECT_EQ(fault("a\t5\nb\t6\n"), "");
  text.target = TargetKind::probability;
  EXPECT_EQ(fault("a\t1\nb\t1\n"), "");
  text.target = TargetKind::span;
  text.pairs = PairTexts::always;
  EXPECT_EQ(fault("which?\tRed won.\tRed\nwhat?\tRed won.\tRed\n"), "");
  text = {};
  const std::string train = folder.write("train.tsv", "a\tx\nb\ty\n");
  const DataSummary both = check_data({{train}, {folder.write("test.tsv", "c\tx\n")}});
  EXPECT_EQ(both.files[1].fault, "") << "only training needs two";
}

TEST_F(DataCheck, SaysWhichPartIsEmptyOrOfOneClass) {
  TextConfig text;
  const auto fault = [&](const std::string& path) { return check_format(path, text).fault; };
  text.format = DataFormat::graph;
  text.target_units = "line";
  folder.write("edges.tsv", "a b\n");
  const auto nodes = [&](const char* lines) {
    folder.write("nodes.tsv", lines);
    return fault(folder.path());
  };
  EXPECT_THAT(nodes("a\ttrain\tx\nb\ttrain\ty\n"), HasSubstr("no node has split valid"));
  EXPECT_THAT(nodes("a\tvalid\tx\nb\tvalid\ty\n"), HasSubstr("no node has split train"));
  EXPECT_THAT(nodes("a\ttrain\tx y\nb\tvalid\tz\n"), HasSubstr("the one token 'x y'"));
  EXPECT_EQ(nodes("a\ttrain\tx\nb\ttrain\ty\nc\tvalid\tx\n"), "");
  text.target = TargetKind::number;
  EXPECT_THAT(nodes("a\ttrain\t5\nb\tvalid\t6\n"), HasSubstr("the deviation is 0"));
  text = {};
  text.format = DataFormat::interactions;
  EXPECT_THAT(fault(folder.write("two", "u a\nu b\n")), HasSubstr("no user has three items"));
  EXPECT_THAT(fault(folder.write("one", "u a\nu b\nu c\n")), HasSubstr("the one token 'a'"));
  EXPECT_EQ(fault(folder.write("more", "u a\nu b\nu c\nu d\n")), "");
}

TEST_F(DataCheck, ReadsLabelsPerToken) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "Ann B-PER\nlives O\n\n";
  text += "Bob B-PRE\nlives O\n\nO O\n";
  const std::vector<PairFiles> files = {{folder.write("a.conll", text)},
                                        {folder.write("b.conll",
                                                      "Ann X\nlives O\n\nAnn B-PER\n"
                                                      "lives O\n\nBob O\nran\n")}};
  const DataSummary summary = check_data(files);
  const FileSummary& file = summary.files[0];
  EXPECT_STREQ(file.unit, "sentences");
  EXPECT_EQ(file.lines, 22);
  EXPECT_THAT(file.labels, ElementsAre(Pair("O", 22), Pair("B-PER", 20), Pair("B-PRE", 1)));
  EXPECT_THAT(file.odd, IsEmpty());
  const Overlap& overlap = summary.overlaps[0];
  EXPECT_THAT(overlap.examples, ElementsAre("Ann lives")) << "once";
  EXPECT_THAT(overlap.new_labels, ElementsAre("X"));
  const OddLines& odd = summary.files[1].odd.at(0);
  EXPECT_THAT(odd.lines, ElementsAre(8)) << "as the message";
  EXPECT_THAT(odd.example, HasSubstr("b.conll:8: has one column"));
  const std::string same = folder.write("c.conll", "a O\nb O\n\nc O\n");
  EXPECT_THAT(check_data({{same}}).files[0].fault, HasSubstr("the one token 'O'"));
}

TEST_F(DataCheck, FindsAnotherSeparatorOfLabels) {
  TextConfig text;
  text.target = TargetKind::labels;
  const auto found = [&](const char* lines) {
    const DataSummary summary = check_data({{folder.write("t.tsv", lines)}}, text);
    std::string remedies;
    for (const OddLines& odd : summary.files[0].odd) remedies += odd.kind + " " + odd.remedy;
    return remedies;
  };
  EXPECT_EQ(found("a b\tred; blue\nc d\tblue\ne f\tred; blue\n"),
            "separator if it is between labels, set data.label_separator=';'");
  EXPECT_THAT(found("a b\tred,blue\nc d\tblue\n"), HasSubstr("data.label_separator=','"));
  EXPECT_EQ(found("a b\tred|blue, dark\nc d\tblue, dark\n"), "");
  text.label_separator = ";";
  EXPECT_THAT(found("a b\tred|blue\nc d\tblue\n"), HasSubstr("data.label_separator='|'"));
  std::string rare = "a b\tred|blue\n";
  for (int i = 0; i < 10; ++i) rare += fmt::format("a {}\tred\nb {}\tblue\n", i, i);
  EXPECT_EQ(found(rare.c_str()), "");
}

TEST_F(DataCheck, ComparesSidesOnlyIfBothAreTexts) {
  std::string sets, labels;
  for (int i = 0; i < 20; ++i) {
    sets += fmt::format("{}\t{}\n", i, i);
    labels += fmt::format("{}\t{}\n", i % 2 == 0 ? "good" : "bad", i % 2 == 0 ? "good" : "bad");
  }
  std::string prose = "a";
  for (int i = 0; i < 25; ++i) prose += " a";
  const std::string path = folder.write("t.tsv", sets);
  EXPECT_EQ(check_data({{path}}).files[0].odd.at(0).kind, "unchanged");
  TextConfig text;
  text.source_units = "set";
  EXPECT_THAT(check_data({{path}}, text).files[0].odd, IsEmpty());
  text = {};
  text.target = TargetKind::number;
  EXPECT_THAT(check_data({{path}}, text).files[0].odd, IsEmpty());
  const std::string uneven = folder.write("u.tsv", sets + prose + "\t3\n");
  EXPECT_THAT(check_data({{uneven}}, text).files[0].odd, IsEmpty());
  EXPECT_THAT(check_data({{uneven}}, text).files[0].labels, IsEmpty()) << "numbers";
  EXPECT_THAT(check(labels).odd, IsEmpty());
}

TEST_F(DataCheck, NamesTheSettingThatReadsTheLines) {
  EXPECT_THAT(check("a\tb\tyes\nc\td\tno\n").odd.at(0).example,
              HasSubstr("if sources are two texts, set data.pairs = always"));
  EXPECT_THAT(check("a b\tx\nc\t\nd\ty\n").odd.at(0).remedy,
              HasSubstr("if targets are any number of labels, set data.target=labels"));
  EXPECT_THAT(check("a b\tx\n\tz\nd\ty\n").odd.at(0).remedy, Not(HasSubstr("labels")));
}

TEST_F(DataCheck, MoleculesNeedFewLetters) {
  TextConfig text;
  const std::string path = folder.write("t.tsv", "[O-][N+](=O)[O-].[Na+]\t1\n");
  EXPECT_FALSE(check_data({{path}}, text).files[0].odd.empty());
  text.source_units = "smiles";
  EXPECT_THAT(check_data({{path}}, text).files[0].odd, IsEmpty());
}

// Sources that are not text look normal in a line; the units of training reveal them.
TEST_F(DataCheck, ReadsWhatUnitsSayThatItIs) {
  TextConfig text;
  const auto faults = [&](const char* lines) {
    const FileSummary file = check_data({{folder.write("t.tsv", lines)}}, text).files[0];
    return file.odd.empty() ? std::vector<int64_t>() : file.odd[0].lines;
  };
  text.source_units = "smiles";
  EXPECT_THAT(faults("CCO\t1\nC1CC\t2\nCCQ\t1\n"), ElementsAre(2, 3));
  text.source_units = "molecule";
  EXPECT_THAT(faults("CCO\t1\nC1CC\t2\n"), ElementsAre(2));
  text.source_units = "set";
  EXPECT_THAT(faults("1 2\t1\n1,2 3\t2\n1 x\t1\n"), ElementsAre(2, 3));
  text.source_units = "image";
  EXPECT_THAT(faults("words\t1\n"), ElementsAre(1));
  text = {};
  text.target = TargetKind::number;
  EXPECT_THAT(faults("a\t1.5\nb\tnan\n"), ElementsAre(2));
}

TEST_F(DataCheck, ComparesMoleculesAndNotSpellings) {
  TextConfig text;
  const std::vector<PairFiles> files = {
      {folder.write("train.tsv", "c1ccccc1\t1\nC1=CC=CC=C1\t1\nOCC\t0\nC1CC\t0\n")},
      {folder.write("test.tsv", "[H]OCC\t0\nCCC\t1\nC1C\t0\n")}};
  for (const bool is_molecule : {true, false}) {
    text.source_units = is_molecule ? "molecule" : "char";
    const DataSummary summary = check_data(files, text);
    EXPECT_EQ(summary.files[0].repeated, is_molecule ? 1 : 0);
    EXPECT_EQ(summary.overlaps[0].sources, is_molecule ? 1 : 0);
    EXPECT_EQ(summary.overlaps[0].pairs, is_molecule ? 1 : 0);
  }
}

TEST_F(DataCheck, ReadsTheSequencesOfFasta) {
  const FileSummary file =
      check_data({{folder.write("p.fasta", ">one\nMKT\nAY\n>two\nGG\n")}}).files[0];
  EXPECT_EQ(file.lines, 2);
  EXPECT_EQ(file.source.characters.longest, 5);
  const std::string bad = folder.write("q.fasta", ">one\nMK1\n");
  EXPECT_THAT(error_of([&] { check_data({{bad}}); }), HasSubstr("q.fasta:2: '1' in a sequence"));
}

TEST_F(DataCheck, PointsOutAHeader) {
  std::string text = "sentence\tlabel\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("a text {}\t{}\n", i, i % 2);
  const FileSummary file = check(text);
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_EQ(file.odd[0].kind, "header");
  EXPECT_THAT(file.odd[0].lines, ElementsAre(1));
  EXPECT_THAT(check(text + "another\tlabel\n").odd, IsEmpty());
  EXPECT_THAT(check(text + "another\tfair\n").odd, IsEmpty()) << "rare labels are not a header";
}

// Also for a line longer than one read: later lines keep their numbers.
TEST_F(DataCheck, GoesOnBehindALongLine) {
  const std::string text = "a\tx\nb\t" + std::string(3 << 20, 'y') + "\nc\tz\nd\n";
  const FileSummary file = check(text);
  EXPECT_EQ(file.lines, 4);
  ASSERT_EQ(file.odd.size(), 1u);
  EXPECT_THAT(file.odd[0].lines, ElementsAre(2, 4));
  const std::string source = folder.write("s", "a\n" + std::string(3 << 20, 'y') + "\nc\n"),
                    target = folder.write("t", "x\ny\nz\n");
  EXPECT_EQ(check_data({{source, target}}).files[0].lines, 3);
}

TEST_F(DataCheck, StopsWhereAFileCannotBeUnpacked) {
  const std::string packed = test::gzip(std::string(1000, 'a') + "\tb\n");
  EXPECT_THAT(error_of([&] { check(packed.substr(0, packed.size() - 4)); }),
              HasSubstr("is cut off"));
  EXPECT_THAT(error_of([] { check_data({}); }), HasSubstr("no files"));
}

}  // namespace data_check_test
}  // namespace attend
