#include "attend/pictures/molecule_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/pictures/render.h"
#include "tests/pictures/support.h"

namespace attend {
namespace molecule_drawing_test {

using testing::HasSubstr;
using testing::Not;

MoleculeDrawing ring(int64_t atoms) {
  MoleculeDrawing molecule;
  for (int64_t i = 0; i < atoms; ++i) {
    molecule.atoms.push_back({"c", 0});
    molecule.bonds.push_back({i, (i + 1) % atoms, 1, true});
  }
  return molecule;
}

double between(const DrawnPoint& one, const DrawnPoint& other) {
  return std::hypot(one.x - other.x, one.y - other.y);
}

// A chain with a branch, two rings with a common bond, and a separate part.
MoleculeDrawing some_molecule() {
  MoleculeDrawing molecule;
  for (const char* label : {"C", "C", "O", "N", "C", "C", "C", "C", "C", "C", "C", "C", "[Na+]"})
    molecule.atoms.push_back({label, 0.5});
  for (const auto& [first, second] : std::vector<std::pair<int64_t, int64_t>>{{0, 1},
                                                                              {1, 2},
                                                                              {1, 3},
                                                                              {3, 4},
                                                                              {4, 5},
                                                                              {5, 6},
                                                                              {6, 7},
                                                                              {7, 8},
                                                                              {8, 9},
                                                                              {4, 9},
                                                                              {8, 10},
                                                                              {10, 11},
                                                                              {9, 11}})
    molecule.bonds.push_back({first, second, first == 1 && second == 2 ? 2 : 1});
  return molecule;
}

TEST(MoleculeDrawing, RingsAreRegular) {
  for (const int64_t atoms : {3, 5, 6}) {
    const auto places = molecule_layout(ring(atoms));
    const double side = between(places[0], places[1]);
    EXPECT_NEAR(side, 1, 0.25) << atoms;
    for (int64_t i = 0; i < atoms; ++i)
      EXPECT_NEAR(
          between(places[static_cast<size_t>(i)], places[static_cast<size_t>((i + 1) % atoms)]),
          side, 0.02)
          << atoms;
  }
}

TEST(MoleculeDrawing, BondsAreOfOneLengthAndAtomsApart) {
  const MoleculeDrawing molecule = some_molecule();
  const auto places = molecule_layout(molecule);
  for (const auto& bond : molecule.bonds)
    EXPECT_NEAR(
        between(places[static_cast<size_t>(bond.first)], places[static_cast<size_t>(bond.second)]),
        1, 0.3);
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_GT(between(places[i], places[j]), 0.7) << i << " " << j;
  EXPECT_GT(places.back().x, places[11].x + 0.7) << "a separate part is drawn next to the others";
}

TEST(MoleculeDrawing, SizesAtTheEdges) {
  EXPECT_TRUE(molecule_layout({}).empty());
  EXPECT_EQ(molecule_layout({{{"C", 1}}, {}}).size(), 1U);
  MoleculeDrawing two{{{"C", 1}, {"C", 1}}, {{0, 1}}};
  EXPECT_NEAR(between(molecule_layout(two)[0], molecule_layout(two)[1]), 1, 1e-3);
  MoleculeDrawing large;
  large.atoms.assign(401, {"C", 0});
  try {
    molecule_svg(large);
    FAIL() << "was drawn";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("401 atoms; a drawing shows at most 400"));
  }
}

TEST(MoleculeDrawing, IsAPicture) {
  MoleculeDrawing molecule = some_molecule();
  molecule.title = "a < b";
  molecule.atoms[3].weight = 1;
  molecule.atoms[4].weight = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = molecule_svg(molecule);
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr(">[Na+]</text>"));
  EXPECT_EQ(count(svg, "<path d=\"M"), 14) << "13 bonds, one of two lines";
  EXPECT_EQ(count(svg, "fill-opacity=\"1.000\""), 1) << "the largest weight";
  EXPECT_EQ(count(svg, "fill-opacity=\"0.500\""), 11);
  EXPECT_THAT(svg, Not(HasSubstr("\"nan\"")));
  EXPECT_GT(decode_png(render_png(svg)).width, 0);
  EXPECT_EQ(count(molecule_svg(ring(6)), "stroke-dasharray"), 6);
}

TEST(MoleculeDrawing, ShadesTheHalvesOfBonds) {
  MoleculeDrawing molecule{{{"C", 0.25}, {"N", 0}, {"O", 0}}, {{0, 1}, {1, 2}}};
  EXPECT_EQ(count(molecule_svg(molecule), "class=\"shade\""), 0);
  molecule.bonds[0].first_weight = 0.5;
  molecule.bonds[0].second_weight = 1;
  molecule.bonds[1].first_weight = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = molecule_svg(molecule);
  EXPECT_EQ(count(svg, "class=\"shade\""), 2);
  EXPECT_EQ(count(svg, "stroke-opacity=\"0.500\""), 1);
  EXPECT_EQ(count(svg, "stroke-opacity=\"1.000\""), 1);
  EXPECT_EQ(count(svg, " fill-opacity=\"0.250\""), 1) << "on the scale of the bonds";
  EXPECT_THAT(svg, HasSubstr("<title>0.5</title>"));
}

}  // namespace molecule_drawing_test
}  // namespace attend
