#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attend/data/source_kind.h"
#include "tests/support/files.h"

namespace attend {
namespace molecule_source_test {

using at::Tensor;

const SourceKind& kind() { return *source_kind("molecule"); }

NeighbourForm form() { return *kind().shape({}).as<NeighbourForm>(); }

Tensor frames_of(const std::string& smiles) { return kind().reader({})->read(smiles); }

// Bonds of atom i in the frames: neighbour and kind.
std::vector<std::pair<int64_t, int64_t>> bonds_of(const Tensor& frames, int64_t i) {
  const NeighbourForm shape = form();
  const int64_t first = shape.depth - 2 * shape.neighbours;
  std::vector<std::pair<int64_t, int64_t>> bonds;
  for (int64_t n = 0; n < shape.neighbours; ++n) {
    const auto step = frames[i][first + n].item<int64_t>(),
               of_kind = frames[i][first + shape.neighbours + n].item<int64_t>();
    if (of_kind > 0) bonds.emplace_back(i + step, of_kind);
  }
  std::sort(bonds.begin(), bonds.end());
  return bonds;
}

using Bonds = std::vector<std::pair<int64_t, int64_t>>;

TEST(MoleculeSource, FramesTellOfBonds) {
  const Tensor frames = frames_of("CC(=O)c1ccsc1C#N");
  EXPECT_EQ(frames.sizes(), (std::vector<int64_t>{10, form().depth}));
  // Kinds: single 1, double 2, triple 3, aromatic in a ring 10.
  EXPECT_EQ(bonds_of(frames, 0), (Bonds{{1, 1}}));
  EXPECT_EQ(bonds_of(frames, 1), (Bonds{{0, 1}, {2, 2}, {3, 1}}));
  EXPECT_EQ(bonds_of(frames, 2), (Bonds{{1, 2}}));
  EXPECT_EQ(bonds_of(frames, 3), (Bonds{{1, 1}, {4, 10}, {7, 10}}));
  EXPECT_EQ(bonds_of(frames, 7), (Bonds{{3, 10}, {6, 10}, {8, 1}}));
  EXPECT_EQ(bonds_of(frames, 9), (Bonds{{8, 3}}));
  EXPECT_EQ(bonds_of(frames_of("[NH3]->[Fe]~C"), 1), (Bonds{{0, 1}, {2, 1}}));
  EXPECT_TRUE(bonds_of(frames_of("[Na+].[Cl-]"), 0).empty());
  for (int64_t i = 0; i < 10; ++i)
    for (const auto& [other, of_kind] : bonds_of(frames, i)) EXPECT_LT(of_kind, form().kinds);
}

// Sorted rows, without the offsets to neighbours.
std::vector<std::vector<float>> rows_of(const std::string& smiles) {
  const Tensor frames = frames_of(smiles);
  const NeighbourForm shape = form();
  std::vector<std::vector<float>> rows;
  for (int64_t i = 0; i < frames.size(0); ++i) {
    const float* begin = frames[i].data_ptr<float>();
    const float* kinds = begin + shape.depth - shape.neighbours;
    std::vector<float> row(begin, kinds - shape.neighbours);
    std::vector<float> bonds(kinds, begin + shape.depth);
    std::sort(bonds.begin(), bonds.end());
    row.insert(row.end(), bonds.begin(), bonds.end());
    rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(MoleculeSource, SpellingsHaveTheSameFrames) {
  for (const auto& [a, b] :
       std::vector<std::pair<std::string, std::string>>{{"c1ccccc1", "C1=CC=CC=C1"},
                                                        {"Oc1ccccc1", "[H]OC1=CC=CC=C1 phenol"},
                                                        {"C", "[H]C([H])([H])[H]"},
                                                        {"CN(=O)=O", "C[N+](=O)[O-]"},
                                                        {"CC(F)Cl", "ClC(C)F"}})
    EXPECT_EQ(rows_of(a), rows_of(b)) << a << " " << b;
  EXPECT_NE(rows_of("C1=CC=CCC1"), rows_of("C1=CCCCC1"));
}

TEST(MoleculeSource, AtomsAreToldApart) {
  const std::vector<std::string> unlike = {
      "C",  "[CH3]", "c1ccccc1",   "[13CH4]",        "N",  "[NH4+]", "[NH2-]",
      "Cl", "[Pt]",  "C(F)(Cl)Br", "[C@H](F)(Cl)Br", "CC", "C1CC1"};
  for (size_t i = 0; i < unlike.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const int64_t own = form().depth - 2 * form().neighbours;
      EXPECT_FALSE(at::equal(frames_of(unlike[i])[0].slice(0, 0, own),
                             frames_of(unlike[j])[0].slice(0, 0, own)))
          << unlike[i] << " " << unlike[j];
    }
  EXPECT_EQ(kind().frame_names("ClC[NH3+]", {}, 3),
            (std::vector<std::string>{"Cl", "C", "[NH3+]"}));
  EXPECT_EQ(frames_of("").size(0), 0);
}

TEST(MoleculeSource, RefusesWhatIsNoMolecule) {
  for (const auto& wrong : std::vector<std::pair<std::string, std::string>>{
           {"C1CC", "SMILES 'C1CC': ring 1 is opened and not closed"},
           {"C[Xx]", "names no element"},
           {"[U](F)(F)(F)(F)(F)(F)(F)(F)F",
            "atom 1, [U], has over 8 bonds; set data.source_units to smiles"}})
    EXPECT_THAT(test::error_of([&] { frames_of(wrong.first); }), testing::HasSubstr(wrong.second));
}

}  // namespace molecule_source_test
}  // namespace attend
