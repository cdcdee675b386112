#include "attend/data/molecule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/files.h"

namespace attend {
namespace molecule_test {

using test::error_of;
using testing::HasSubstr;
using testing::IsEmpty;

// "C3 O1": elements, small where they are aromatic, with their hydrogens and charges.
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

// "1-2 2=3": aromatic ones by ':'; those in a ring have "r" behind them.
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
  EXPECT_EQ(bonds_of("C1CCC=%01"), "1-2r 2-3r 3-4r 1=4r") << "the bond where the ring ends";
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
  EXPECT_THAT(reason("[C+H]"), HasSubstr("'H' is in no place"));
  EXPECT_THAT(reason("[12345C]"), HasSubstr("at most four digits"));
  EXPECT_THAT(reason("[C:]"), HasSubstr("a number follows :"));
  EXPECT_THAT(reason("C1C1"), HasSubstr("ring 1 binds atoms 1 and 2, which are bound already"));
  EXPECT_THAT(reason("C12CC12"), HasSubstr("ring 2 binds atoms 1 and 3"));
  EXPECT_THAT(reason("C=1CC#1"), HasSubstr("ring 1 has one bond where it begins and another"));
  EXPECT_THAT(reason("C=1CC-1"), HasSubstr("ring 1 has one bond"));
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
}

}  // namespace molecule_test
}  // namespace attend
