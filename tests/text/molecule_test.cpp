#include "attend/text/molecule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "tests/support/files.h"

namespace attend {
namespace molecule_test {

using test::error_of;
using testing::HasSubstr;
using testing::IsEmpty;

// "C3 O1": elements with hydrogens and charges; aromatic atoms in lower case.
std::string atoms_of(std::string_view smiles) {
  std::string all;
  for (const Atom& atom : read_molecule(smiles).atoms) {
    std::string element = atom.element;
    if (atom.is_aromatic) element[0] = static_cast<char>(element[0] - 'A' + 'a');
    all += fmt::format("{}{}{}", all.empty() ? "" : " ", element, atom.hydrogens);
    if (atom.charge != 0) all += fmt::format("{:+}", atom.charge);
  }
  return all;
}

// "1-2 2=3": aromatic bonds as ':', bonds in a ring followed by "r".
std::string bonds_of(std::string_view smiles) {
  std::string all;
  for (const Bond& bond : read_molecule(smiles).bonds)
    all += fmt::format("{}{}{}{}{}", all.empty() ? "" : " ", bond.first + 1,
                       "-=#$:"[static_cast<size_t>(bond.type)], bond.second + 1,
                       bond.in_ring ? "r" : "");
  return all;
}

TEST(Molecule, AtomsHaveTheHydrogensThatTheirBondsLeaveFree) {
  EXPECT_EQ(atoms_of("CCO"), "C3 C2 O1") << "ethanol";
  EXPECT_EQ(atoms_of("C"), "C4");
  EXPECT_EQ(atoms_of("C=O"), "C2 O0");
  EXPECT_EQ(atoms_of("C#N"), "C1 N0");
  EXPECT_EQ(atoms_of("CS(=O)(=O)O"), "C3 S0 O0 O0 O1") << "sulphur of six valences";
  EXPECT_EQ(atoms_of("ClCBr"), "Cl0 C2 Br0");
  EXPECT_EQ(atoms_of("c1ccccc1O"), "c1 c1 c1 c1 c1 c0 O1") << "phenol";
  EXPECT_EQ(atoms_of("c1cc[nH]c1"), "c1 c1 c1 n1 c1") << "pyrrole";
  EXPECT_EQ(atoms_of("c1ccoc1"), "c1 c1 c1 o0 c1") << "furan";
  EXPECT_EQ(atoms_of("Cn1ccnc1"), "C3 n0 c1 c1 n0 c1");
  EXPECT_EQ(atoms_of("Cn1cccc(c1)=O"), "C3 n0 c1 c1 c1 c0 c1 O0");
  EXPECT_EQ(atoms_of("*C"), "*0 C3");
  EXPECT_EQ(atoms_of("CI(C)C"), "C3 I0 C3 C3") << "iodine of three valences";
  EXPECT_EQ(atoms_of("N->[Fe]"), "N3 Fe0") << "both electrons are the nitrogen's";
  EXPECT_EQ(atoms_of("CN(C)C->B"), "C3 N0 C3 C3 B2");
  EXPECT_EQ(atoms_of("B<-N(C)(C)C"), "B2 N0 C3 C3 C3");
  EXPECT_EQ(atoms_of("C~C"), "C4 C4");
}

TEST(Molecule, HydrogenAtomsBecomeHydrogensOfTheirNeighbours) {
  EXPECT_EQ(atoms_of("[H]C([H])([H])[H]"), "C4");
  EXPECT_EQ(atoms_of("[H]Oc1ccccc1"), atoms_of("Oc1ccccc1"));
  EXPECT_EQ(atoms_of("[H]n1cccc1"), "n1 c1 c1 c1 c1");
  EXPECT_EQ(atoms_of("[H:3][NH2+][H]"), "N4+1");
  EXPECT_EQ(atoms_of("[H]/N=C/C"), "N1 C1 C3");
  EXPECT_EQ(bonds_of("[H]C([H])=C([H])[H]"), "1=2");
  for (const auto& [text, atoms] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"[2H]C", "H0 C3"},
                                                                  {"[H+].C", "H0+1 C4"},
                                                                  {"[H]*", "H0 *0"},
                                                                  {"[H][H]", "H0 H0"},
                                                                  {"[H-]", "H0-1"},
                                                                  {"C[H]C", "C3 H0 C3"}})
    EXPECT_EQ(atoms_of(text), atoms);
}

TEST(Molecule, ChargesOfNitroGroupsAreSeparated) {
  EXPECT_EQ(atoms_of("CN(=O)=O"), "C3 N0+1 O0-1 O0");
  EXPECT_EQ(bonds_of("CN(=O)=O"), "1-2 2-3 2=4");
  EXPECT_EQ(atoms_of("C=N#N"), "C2 N0+1 N0-1");
  EXPECT_EQ(bonds_of("CN=N#N"), "1-2 2=3 3=4");
  EXPECT_EQ(atoms_of("O=n1ccccc1"), "O0-1 n0+1 c1 c1 c1 c1 c1");
  EXPECT_EQ(atoms_of("CN(C)(C)=O"), "C3 N0+1 C3 C3 O0-1");
  EXPECT_EQ(atoms_of("O=Cl(=O)(=O)O"), "O0-1 Cl0+3 O0-1 O0-1 O1");
  EXPECT_EQ(atoms_of("CN=O"), "C3 N0 O0");
  EXPECT_EQ(atoms_of("CS(=O)(=O)C"), "C3 S0 O0 O0 C3");
}

// Expected values: whether a ring has 4n+2 electrons, counted by hand.
TEST(Molecule, AromaticityIsPerceived) {
  EXPECT_EQ(bonds_of("C1=CC=CC=C1"), bonds_of("c1ccccc1"));
  EXPECT_EQ(bonds_of("C1=CNC=C1"), bonds_of("c1c[nH]cc1")) << "two of nitrogen, four of carbon";
  EXPECT_EQ(bonds_of("C1=CC=CO1"), bonds_of("c1ccco1"));
  EXPECT_EQ(bonds_of("c1ccccccc1"), "1=2r 2-3r 3=4r 4-5r 5=6r 6-7r 7=8r 1-8r") << "eight";
  EXPECT_EQ(bonds_of("C1=CC=CC1=C"), "1=2r 2-3r 3=4r 4-5r 1-5r 5=6") << "fulvene: five";
  EXPECT_EQ(bonds_of("C1=CC=CC=CC1=O"), "1:2r 2:3r 3:4r 4:5r 5:6r 6:7r 1:7r 7=8")
      << "oxygen takes the electron of its carbon";
  EXPECT_EQ(bonds_of("[CH-]1C=CC=C1"), "1:2r 2:3r 3:4r 4:5r 1:5r");
  EXPECT_EQ(bonds_of("[CH+]1C=CC=CC=C1"), "1:2r 2:3r 3:4r 4:5r 5:6r 6:7r 1:7r");
  EXPECT_EQ(bonds_of("C1=CCC=C1"), "1=2r 2-3r 3-4r 4=5r 1-5r") << "a saturated atom";
  EXPECT_EQ(bonds_of("B1C=CC=CC=C1"), "1-2r 2=3r 3-4r 4=5r 5-6r 6=7r 1-7r");
  EXPECT_EQ(bonds_of("O=S1C=CC=C1"), "1=2 2-3r 3=4r 4-5r 5=6r 2-6r");
  // Azulene: the outer cycle has ten electrons, neither ring has six.
  EXPECT_EQ(bonds_of("C1=CC2=CC=CC=CC2=C1"),
            "1:2r 2:3r 3:4r 4:5r 5:6r 6:7r 7:8r 8:9r 3-9r 9:10r 1:10r");
  // A bond between two aromatic rings may be in a ring that is not aromatic.
  EXPECT_THAT(bonds_of("c1ccc2c(c1)Cc1ccccc21"), HasSubstr(" 4-13r"));
  EXPECT_EQ(bonds_of("c1ccc2c(c1)c1ccccc12"), bonds_of("C1=CC=C2C(=C1)C1=CC=CC=C12"));
  EXPECT_EQ(atoms_of("c1cc1C"), "c1 c1 c0 C3") << "three electrons have no double bonds";
}

TEST(Molecule, OnlyStereocentresAreMarked) {
  const auto marks_of = [](std::string_view smiles) {
    std::string marks;
    for (const Atom& atom : read_molecule(smiles).atoms)
      marks += atom.chirality.empty() ? '-' : '@';
    return marks;
  };
  EXPECT_EQ(marks_of("C[C@H](F)Cl"), "-@--");
  EXPECT_EQ(marks_of("C[C@H](C)Cl"), "----");
  EXPECT_EQ(marks_of("C[C@@H2]Cl"), "---");
  EXPECT_EQ(marks_of("C[S@](=O)CC"), "-@---");
  EXPECT_EQ(marks_of("C[N@@](CC)CCC"), "-------") << "turns over";
  EXPECT_EQ(marks_of("C[N@@]1CC1C"), "-@---") << "a ring of three holds it";
  EXPECT_EQ(marks_of("C[C@H]1CC[C@@H](C)CC1"), "-@--@---") << "cis or trans";
  EXPECT_EQ(marks_of("C[C@H]1CCCCC1"), "-------");
}

TEST(Molecule, BracketsSayIsotopeElementChiralityHydrogensAndCharge) {
  EXPECT_EQ(atoms_of("[NH4+].[Cl-]"), "N4+1 Cl0-1");
  EXPECT_EQ(atoms_of("[Fe+++]"), "Fe0+3");
  EXPECT_EQ(atoms_of("[Fe+3]"), "Fe0+3");
  EXPECT_EQ(atoms_of("[O--]"), "O0-2");
  EXPECT_EQ(atoms_of("[OH-]"), "O1-1");
  EXPECT_EQ(atoms_of("[H][H]"), "H0 H0");
  EXPECT_EQ(atoms_of("[se]1cccc1"), "se0 c1 c1 c1 c1");
  const Molecule molecule = read_molecule("C[13C@@H](N)[C@TH1H2]F[CH3:12]");
  EXPECT_EQ(molecule.atoms[1].isotope, 13);
  EXPECT_EQ(molecule.atoms[1].chirality, "@@");
  EXPECT_EQ(molecule.atoms[1].hydrogens, 1);
  EXPECT_EQ(molecule.atoms[1].text, "[13C@@H]");
  EXPECT_EQ(molecule.atoms[3].chirality, "@TH1");
  EXPECT_EQ(molecule.atoms[3].hydrogens, 2);
  EXPECT_EQ(molecule.atoms[5].hydrogens, 3);
}

TEST(Molecule, BondsRingsBranchesAndParts) {
  EXPECT_EQ(bonds_of("CC=C#C"), "1-2 2=3 3#4");
  EXPECT_EQ(bonds_of("CC(C)(C)O"), "1-2 2-3 2-4 2-5");
  EXPECT_EQ(bonds_of("C(C(C)C)O"), "1-2 2-3 2-4 1-5");
  EXPECT_EQ(bonds_of("C1CC1C"), "1-2r 2-3r 1-3r 3-4");
  EXPECT_EQ(bonds_of("C=1CCC=1"), "1-2r 2-3r 3-4r 1=4r");
  EXPECT_EQ(bonds_of("C1CCC=%01"), "1-2r 2-3r 3-4r 1=4r") << "the bond at the end of the ring";
  EXPECT_EQ(bonds_of("C12CC1C2"), "1-2r 2-3r 1-3r 3-4r 1-4r");
  EXPECT_EQ(bonds_of("C(CC1)1"), "1-2r 2-3r 1-3r") << "the ring begins in the branch";
  EXPECT_EQ(bonds_of("C.C"), "");
  EXPECT_EQ(bonds_of("C1.C1"), "1-2") << "a ring number across parts";
  EXPECT_EQ(bonds_of("C(C.O)C"), "1-2 1-4");
  EXPECT_EQ(bonds_of("c1cc1-c1cc1"), "1:2r 2:3r 1:3r 3-4 4:5r 5:6r 4:6r");
  EXPECT_EQ(bonds_of("c1cc1c1cc1"), bonds_of("c1cc1-c1cc1")) << "no bond of a ring";
  EXPECT_EQ(bonds_of("C1CC1CC1CC1"), "1-2r 2-3r 1-3r 3-4 4-5 5-6r 6-7r 5-7r");
  EXPECT_EQ(bonds_of("F/C=C\\F"), "1-2 2=3 3-4");
  const Molecule ring = read_molecule("C/1CC\\1");
  EXPECT_EQ(ring.bonds[2].direction, '/');
  EXPECT_EQ(read_molecule("C1CC\\1").bonds[2].direction, '/') << "seen from the other end";
  EXPECT_EQ(read_molecule("F/C=C\\F").bonds[2].direction, '\\');
  EXPECT_THAT(read_molecule("c1cc1C").atoms[0].in_ring, true);
  EXPECT_THAT(read_molecule("c1cc1C").atoms[3].in_ring, false);
  EXPECT_THAT(read_molecule("  ").atoms, IsEmpty());
}

TEST(Molecule, WhatCannotBeReadIsNamed) {
  const auto reason = [](std::string_view text) { return error_of([&] { read_molecule(text); }); };
  EXPECT_EQ(reason("C11CC"), "SMILES 'C11CC': ring 1 begins and ends at atom 1");
  EXPECT_THAT(reason("C1CC"), HasSubstr("ring 1 is opened and not closed"));
  EXPECT_THAT(reason("C(C"), HasSubstr("a branch is opened by ("));
  EXPECT_THAT(reason("C[Xx]"), HasSubstr("atom '[Xx]': names no element"));
  EXPECT_THAT(reason("[13]"), HasSubstr("names no element"));
  EXPECT_THAT(reason("[C+H]"), HasSubstr("'H' is misplaced"));
  EXPECT_THAT(reason("[12345C]"), HasSubstr("at most four digits"));
  EXPECT_THAT(reason("[C@@@](F)(Cl)(Br)I"), HasSubstr("a turn has one or two @"));
  EXPECT_THAT(reason("[C:]"), HasSubstr("a number follows :"));
  EXPECT_THAT(reason("C1C1"), HasSubstr("ring 1 binds atoms 1 and 2, which are already bound"));
  EXPECT_THAT(reason("C12CC12"), HasSubstr("ring 2 binds atoms 1 and 3"));
  EXPECT_THAT(reason("C=1CC#1"), HasSubstr("ring 1 begins with one bond and ends with another"));
  EXPECT_THAT(reason("C=1CC-1"), HasSubstr("ring 1 begins with one bond"));
  EXPECT_THAT(reason("C=(C)C"), HasSubstr("an atom follows a bond, and not ("));
  EXPECT_THAT(reason("C=#C"), HasSubstr("an atom follows a bond, and not #"));
  EXPECT_THAT(reason("C="), HasSubstr("an atom follows a bond, and not the end"));
  EXPECT_THAT(reason("C(=)C"), HasSubstr("an atom follows a bond, and not )"));
  EXPECT_THAT(reason("=C"), HasSubstr("an atom is missing before ="));
  EXPECT_THAT(reason("1CC1"), HasSubstr("an atom is missing before 1"));
  EXPECT_THAT(reason("(C)C"), HasSubstr("an atom is missing before ("));
  EXPECT_THAT(reason("C()C"), HasSubstr("an atom is missing before )"));
  EXPECT_THAT(reason("C."), HasSubstr("an atom is missing before the end"));
  EXPECT_THAT(reason("C..C"), HasSubstr("an atom is missing before ."));
  EXPECT_THAT(reason("C((C))C"), HasSubstr("an atom is missing before ("));
  EXPECT_THAT(reason("C(1CC1)"), HasSubstr("an atom is missing before 1"));
  EXPECT_THAT(reason("C->1CC-1"), HasSubstr("ring 1 begins with one bond"));
}

std::string key_of(std::string_view smiles) { return canonical_key(read_molecule(smiles)); }

TEST(MoleculeKey, IsOneForAllSpellings) {
  for (const std::vector<std::string_view>& spellings : std::vector<std::vector<std::string_view>>{
           {"CCO", "OCC", "C(O)C", "[CH3][CH2][OH]", "[H]OC([H])([H])C", "CCO ethanol"},
           {"c1ccccc1C", "CC1=CC=CC=C1", "C1=CC(C)=CC=C1", "c1(C)ccccc1"},
           {"[Na+].[Cl-]", "[Cl-].[Na+]"},
           {"N[C@@H](C)C(=O)O", "N[C@H](C)C(=O)O", "C[C@@H](N)C(O)=O"},
           {"F/C=C/F", "F/C=C\\F", "FC=CF"},
           {"[NH3]->[Fe]", "[Fe]<-N"},
           {"C12C3C4C1C5C2C3C45", "C1(C2C3C14)C5C2C3C45"},
           {"CC(C)(C)CC(C)(C)C", "C(C(C)(C)C)C(C)(C)C"}})
    for (const std::string_view one : spellings)
      EXPECT_EQ(key_of(one), key_of(spellings[0])) << one;
  EXPECT_EQ(key_of(""), "");
}

TEST(MoleculeKey, DiffersBetweenMolecules) {
  const std::vector<std::string_view> molecules = {
      "CCO", "COC", "CC=O", "C", "[CH3]", "[CH3-]", "[13CH4]", "[14CH4]", "C.C", "CC", "C=C", "C#C",
      "C1CC1.C1CC1", "C1CCCCC1", "C1CCCCC1.C", "c1ccccc1", "C1=CCC=CC1",
      // Pairs with atoms that have equal neighbours at every distance.
      "C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1", "C12C3C1C1C2C31", "C12C3C4C1C3C24", "Cc1ccccc1C",
      "Cc1cccc(C)c1", "Cc1ccc(C)cc1", "[NH3]->[Fe]", "N[Fe]", "[NH3]~[Fe]", "C[C@H](F)Cl",
      "CC(F)Cl", "Oc1ccncc1", "O=c1cc[nH]cc1"};
  std::map<std::string, std::string_view> keys;
  for (const std::string_view molecule : molecules) {
    const auto [other, is_new] = keys.emplace(key_of(molecule), molecule);
    EXPECT_TRUE(is_new) << molecule << " " << other->second;
  }
}

// Atoms, bonds and molecules of RDKit, from tools/conform_molecules.py.
TEST(Molecule, IsReadAsRdkitReadsIt) {
  std::map<std::string, std::string> keys;
  std::istringstream lines(read_file(GOLDEN));
  int64_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    std::istringstream fields(line);
    std::string number, text, atoms, bonds;
    for (std::string* field : {&number, &text, &atoms, &bonds}) std::getline(fields, *field, '\t');
    const Molecule molecule = read_molecule(text);
    std::string own_atoms;
    for (const Atom& atom : molecule.atoms)
      own_atoms += fmt::format("{}{},{},{},{:d},{},{:d},{:d}", own_atoms.empty() ? "" : " ",
                               atom.element, atom.hydrogens, atom.charge, atom.is_aromatic,
                               atom.isotope, atom.in_ring, !atom.chirality.empty());
    EXPECT_EQ(own_atoms, atoms) << text;
    std::vector<std::tuple<int64_t, int64_t, char, bool>> own;
    for (const Bond& bond : molecule.bonds)
      own.emplace_back(bond.first, bond.second, "-=#$:>~"[static_cast<size_t>(bond.type)],
                       bond.in_ring);
    std::sort(own.begin(), own.end());
    std::string own_bonds;
    for (const auto& [first, second, symbol, in_ring] : own)
      own_bonds += fmt::format("{}{},{},{},{:d}", own_bonds.empty() ? "" : " ", first, second,
                               symbol, in_ring);
    EXPECT_EQ(own_bonds, bonds) << text;
    EXPECT_EQ(keys.emplace(number, canonical_key(molecule)).first->second, canonical_key(molecule))
        << text;
  }
  EXPECT_GT(count, 100);
}

}  // namespace molecule_test
}  // namespace attend
