#include "attend/text/smiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/data/pairs.h"
#include "attend/data/tables.h"
#include "attend/data/text_codec.h"
#include "tests/support/files.h"

namespace attend {
namespace smiles_test {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string spaced(std::string_view text) {
  return fmt::format("{}", fmt::join(split_smiles(text), " "));
}

TEST(Smiles, SymbolsAreAtomsBracketsRingsBondsAndBranches) {
  EXPECT_EQ(spaced("CCO"), "C C O");
  EXPECT_EQ(spaced("ClCBr"), "Cl C Br") << "atoms of two letters";
  EXPECT_EQ(spaced("CCc1ccccc1"), "C C c 1 c c c c c 1");
  EXPECT_EQ(spaced("C%12CC%12"), "C %12 C C %12");
  EXPECT_EQ(spaced("C%01CC1"), "C %01 C C 1") << "one ring, written in two ways";
  EXPECT_EQ(spaced("C12CC1C2"), "C 1 2 C C 1 C 2");
  EXPECT_EQ(spaced("C[C@@H](N)C(=O)[O-].[Na+]"), "C [C@@H] ( N ) C ( = O ) [O-] . [Na+]");
  EXPECT_EQ(spaced("F/C=C\\F"), "F / C = C \\ F");
  EXPECT_EQ(spaced("N#C[13C]:*$C"), "N # C [13C] : * $ C");
  EXPECT_EQ(spaced("[NH3]->[Fe]<-NC~C"), "[NH3] -> [Fe] <- N C ~ C");
  EXPECT_EQ(spaced("C%(100)CC%(100)"), "C %(100) C C %(100)");
  EXPECT_EQ(spaced("C%(1)CC1"), "C %(1) C C 1") << "one ring, written in two ways";
  EXPECT_EQ(spaced("CCO ethanol, (pure)\tx"), "C C O") << "a name follows";
  EXPECT_EQ(spaced("  CO\t\n"), "C O");
  EXPECT_THAT(split_smiles(" "), IsEmpty());
}

TEST(Smiles, WhatCannotBeReadIsNamed) {
  const auto reason = [](std::string_view text) { return error_of([&] { split_smiles(text); }); };
  EXPECT_EQ(reason("C1CC"),
            "SMILES 'C1CC': ring 1 is opened and not closed; its other atom takes 1 too");
  EXPECT_THAT(reason("C1CC1C1"), HasSubstr("ring 1 is opened"));
  EXPECT_THAT(reason("C%10C"), HasSubstr("ring 10 is opened"));
  EXPECT_THAT(reason("C%1"), HasSubstr("two digits follow %"));
  for (const std::string_view ring : {"C%()", "C%(a)", "C%(123456)CC%(123456)", "C%(12"})
    EXPECT_THAT(reason(ring), HasSubstr("or up to five in parentheses")) << ring;
  EXPECT_THAT(reason("C[NH3+"), HasSubstr("a bracket is opened by [ and not closed by ]"));
  EXPECT_THAT(reason("C[]C"), HasSubstr("'[]' is not an atom"));
  EXPECT_THAT(reason("C[C[O]"), HasSubstr("'[C[O]' is not an atom"));
  EXPECT_THAT(reason("C(C"), HasSubstr("a branch is opened by ("));
  EXPECT_THAT(reason("CC)"), HasSubstr("a branch is closed by )"));
  EXPECT_THAT(reason("CXC"), HasSubstr("'X' at character 2 is not a symbol of SMILES"));
  EXPECT_THAT(reason("CX C"), HasSubstr("'X' at character 2"));
  EXPECT_THAT(reason("C\u00e9"), HasSubstr("'\u00e9' at character 2"));
}

TEST(Smiles, AreUnitsOfTextsThatKeepTheirLetters) {
  TextConfig text;
  text.source_units = "smiles";
  text.lowercase = text.tokenise = true;
  const TextCodec codec = make_codecs(text).source;
  EXPECT_THAT(codec.split("ClC"), ElementsAre("Cl", "C"));
  EXPECT_EQ(codec.join(codec.split("CC(=O)Cl")), "CC(=O)Cl");
}

TEST(Smiles, AFileWithOtherTextsIsRefusedAtTheLine) {
  const test::TemporaryFolder folder;
  TextConfig text;
  text.source_units = "smiles";
  const std::string lines = folder.write("m.tsv", "CCO\t1\nC1CC\t0\n");
  EXPECT_THAT(error_of([&] { read_examples({lines}, text); }),
              HasSubstr(lines + ":2: SMILES 'C1CC': ring 1 is opened"));
  int64_t bad = 0;
  std::vector<std::string> told;
  const auto examples = read_examples(
      {lines}, text, [&](const std::string& remark) { told.push_back(remark); }, &bad);
  EXPECT_EQ(examples.size(), 1U);
  EXPECT_EQ(bad, 1);
  EXPECT_THAT(told[0], HasSubstr(lines + ":2: SMILES"));
  const std::string itself = folder.write("i.tsv", "CCO\t1\nC[Xx]\t0\n");
  EXPECT_THAT(error_of([&] { read_examples({itself}, text); }),
              HasSubstr(itself + ":2: SMILES 'C[Xx]': atom '[Xx]': names no element"));
  const std::string table = folder.write("m.csv", "y,smiles\n0,CC)\n");
  EXPECT_THAT(error_of([&] {
                read_examples({table, "", "smiles", "y"}, text);
              }),
              HasSubstr(table + ":2: SMILES 'CC)'"));
}

}  // namespace smiles_test
}  // namespace attend
