#include "attend/text/fasta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/tables.h"
#include "tests/support/files.h"
#include "tests/support/packed.h"

namespace attend {
namespace fasta_test {

using test::error_of;

TEST(Fasta, IsASequenceALine) {
  EXPECT_EQ(parse_fasta(">one 1 of 2\nMKT\r\nA Y*\n\n>two\n;a comment 7\nmk-t", "p.fa"),
            "MKTAY*\nmk-t\n");
}

TEST(Fasta, IsReadAsAText) {
  const test::TemporaryFolder folder;
  for (const char* name :
       {"p.fasta", "p.fa", "P.FAA", "p.fna", "p.ffn", "p.frn", "p.fas", "p.fsa", "p.mpfa"}) {
    const std::string path = folder.write(name, ">one\nMKT\nAY\n");
    EXPECT_EQ(read_text(path), "MKTAY\n");
    EXPECT_TRUE(names_text(path));
  }
  EXPECT_EQ(read_text(folder.write("p.fa.xz", test::xz(">one\nMK\n"))), "MK\n");
  EXPECT_EQ(read_text(folder.write("p.txt", ">one\nMK\n")), ">one\nMK\n");
}

TEST(Fasta, NamesTheLineThatIsNone) {
  const auto refusal = [](const std::string& bytes) {
    return error_of([&] { parse_fasta(bytes, "p.fa"); });
  };
  EXPECT_EQ(
      refusal(">one\nMK\nA1 C\n"),
      "p.fa:3: '1' in a sequence; residues are letters, * or -, and a line that begins with > "
      "is a name");
  EXPECT_EQ(refusal("MK\n>one\nMK\n"),
            "p.fa:1: residues before the first name; begin a sequence with a line such as >name");
  EXPECT_EQ(refusal(">one\nMK\n>two\n>three\nMK\n"), "p.fa:3: names a sequence without residues");
  EXPECT_EQ(refusal(">one\n"), "p.fa:1: names a sequence without residues");
  EXPECT_EQ(refusal("\n"), "p.fa: holds no sequence; a line that begins with > names one");
  EXPECT_THAT(refusal(">one\nM\xc3\n"), testing::StartsWith("p.fa:2: "));
}

TEST(Fasta, LeavesSequencesOut) {
  std::vector<std::string> told;
  EXPECT_EQ(parse_fasta("AA\nCC\n>one\nMK\n>two\nA1\nA2\n>three\n>four\nK\nM\r1\nA\n>five\nY\n",
                        "p.fa", [&](const std::string& error) { told.push_back(error); }),
            "MK\nY\n");
  using testing::StartsWith;
  EXPECT_THAT(told, testing::ElementsAre(StartsWith("p.fa:1: residues before"),
                                         StartsWith("p.fa:6: '1' in a sequence"),
                                         StartsWith("p.fa:8: names a sequence without"),
                                         StartsWith("p.fa:11: a carriage return")));
}

}  // namespace fasta_test
}  // namespace attend
