#include "attend/text/conll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/data/data_check.h"
#include "attend/data/pairs.h"
#include "attend/data/tables.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace conll_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ConllFile : public testing::Test {
 protected:
  std::vector<Example> read(const std::string& bytes, const std::string& token_column = "",
                            const std::string& label_column = "") const {
    return read_pairs({folder.write("t.conll", bytes), "", token_column, label_column});
  }
  std::string refusal(const std::string& bytes, const std::string& token_column = "",
                      const std::string& label_column = "") const {
    std::string message = error_of([&] { read(bytes, token_column, label_column); });
    const size_t name = message.find("t.conll");
    return name == std::string::npos ? message : message.substr(name);
  }

  test::TemporaryFolder folder;
};

TEST_F(ConllFile, IsSentencesBetweenBlankLines) {
  const auto examples = read(
      "-DOCSTART- -X- O O\n\n# a comment\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\n \n"
      "# 1\t2\nGerman JJ I-NP B-MISC\n# # # O\n. . O O");
  ASSERT_EQ(examples.size(), 2U);
  EXPECT_EQ(examples[0].source, "EU rejects");
  EXPECT_THAT(examples[0].targets, ElementsAre("B-ORG O"));
  EXPECT_EQ(examples[0].line, 4);
  EXPECT_EQ(examples[1].source, "German # .") << "# is a comment only before a sentence";
  EXPECT_THAT(examples[1].targets, ElementsAre("B-MISC O O"));
  EXPECT_EQ(examples[1].line, 9);
}

TEST_F(ConllFile, HasColumnsByNumber) {
  const std::string bytes = "1\tThe\tDET\t_\n2\tcat\tNOUN\t_\n";
  EXPECT_EQ(read(bytes, "2", "3")[0].source, "The cat");
  EXPECT_EQ(read(bytes, "2", "3")[0].targets[0], "DET NOUN");
  EXPECT_EQ(read(bytes)[0].source, "1 2");
  EXPECT_THAT(refusal(bytes, "2", "5"),
              StartsWith("t.conll:1: has 4 columns; tokens are read from"));
  EXPECT_THAT(refusal(bytes, "FORM", ""), HasSubstr("column 'FORM': columns have numbers, from 1"));
  EXPECT_THAT(refusal(bytes, "0", ""), HasSubstr("from 1"));
  EXPECT_THAT(refusal(bytes, "2", "2"), HasSubstr("column 2 is given for tokens and for labels"));
}

TEST_F(ConllFile, NamesTheLineThatIsNone) {
  EXPECT_EQ(refusal("a X\n\nb Y\nc\nd Y\n"),
            "t.conll:4: has one column, 'c'; a token and its label are wanted, with white space "
            "between");
  EXPECT_EQ(refusal("a N X\nb Y\n"),
            "t.conll:2: has 2 columns, the first token has 3; give each token the same number");
  EXPECT_EQ(refusal("New York\tX\n"),
            "t.conll:1: column 1 is 'New York'; one word is wanted there, such as New_York");
  EXPECT_THAT(refusal("a\t\tX\nb\tY\t\n"), StartsWith("t.conll:2: column 3 is ''"));
  EXPECT_THAT(refusal("a X\n\xff Y\n"), StartsWith("t.conll:2: "));
  EXPECT_THAT(refusal("# nothing\n"), StartsWith("t.conll: is empty; a line for each token"));
}

// Tweets may begin with hashtags.
TEST_F(ConllFile, KeepsHashtagsThatBeginASentence) {
  const auto sources = [&](const std::string& bytes) {
    std::vector<std::string> all;
    for (const Example& example : read(bytes)) all.push_back(example.source);
    return all;
  };
  EXPECT_THAT(sources("#WNUT\tO\nis\tO\n\n#\tO\n1\tO\n"), ElementsAre("#WNUT is", "# 1"));
  EXPECT_THAT(sources("# id 1\n#WNUT\tO\n\n#\tO\n"), ElementsAre("#WNUT", "#"))
      << "no line shows how tokens look";
  EXPECT_THAT(sources("# x = 1\n#a O\nb O\n\n# y\nc O\n"), ElementsAre("#a b", "c"));
  EXPECT_THAT(sources("# id\tdomain\n#a _ _ O\nb _ _ O\n\n# a b c\nd _ _ O\n"),
              ElementsAre("#a b", "d"));
  EXPECT_EQ(read("#a\tO\n\nb\tO\n")[0].line, 1);
}

TEST_F(ConllFile, PassesOverRangesAndEmptyNodesOfConllu) {
  const std::string bytes =
      "# sent_id = 1\n# text = vamonos al mar\n"
      "1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\t_\n1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_\n"
      "2\tnos\tyo\tPRON\t_\t_\t1\tobj\t_\t_\n2.1\tx\t_\tVERB\t_\t_\t_\t_\t_\t_\n"
      "3\t10 000\t_\tNUM\t_\t_\t1\tobl\t_\t_\n";
  const auto examples = read(bytes, "2", "4");
  ASSERT_EQ(examples.size(), 1U);
  EXPECT_EQ(examples[0].source, "vamos nos 10_000");
  EXPECT_EQ(examples[0].targets[0], "VERB PRON NUM");
  std::vector<std::string> told;
  const auto named = read_pairs({folder.write("T.CONLLU", bytes)},
                                [&](const std::string& remark) { told.push_back(remark); });
  EXPECT_EQ(named[0].source, examples[0].source) << "FORM and UPOS without being named";
  EXPECT_EQ(named[0].targets, examples[0].targets);
  EXPECT_THAT(told, ElementsAre(HasSubstr("1 words hold blanks")));
  EXPECT_FALSE(names_text("t.conllu.gz"));
  // Other formats number sentences and tokens like this.
  EXPECT_EQ(read("1-1\ta\tX\n1-2\tb\tY\n", "2", "3")[0].source, "a b");
  // Some CoNLL-U columns.
  EXPECT_EQ(read("1-2\tal\t_\n1\ta\tADP\n2\tel\tDET\n2.1\tx\tVERB\n", "2", "3")[0].source, "a el");
}

TEST_F(ConllFile, GoesOnBehindASentenceThatCannotBeRead) {
  const PairFiles files{folder.write("t.conll", "a X\nb\nc Z\n\nd Y\n\ne\n")};
  int64_t bad = 0;
  const auto examples = read_pairs(
      files, [](const std::string&) {}, &bad);
  ASSERT_EQ(examples.size(), 1U);
  EXPECT_EQ(examples[0].source, "d");
  EXPECT_EQ(bad, 2);
  const FileSummary summary = check_data({files}).files[0];
  EXPECT_TRUE(summary.pairs);
  EXPECT_EQ(summary.lines, 3);
  EXPECT_EQ(summary.odd[0].kind, "malformed");
  EXPECT_THAT(summary.odd[0].lines, ElementsAre(2, 7));
  EXPECT_FALSE(names_text(files.source));
}

TEST_F(ConllFile, MayBePacked) {
  const std::string path = folder.write("T.CONLL.xz", test::xz("a X\n"));
  EXPECT_EQ(read_pairs({path})[0].targets[0], "X");
}

}  // namespace conll_test
}  // namespace attend
