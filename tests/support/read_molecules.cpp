// Reads SMILES for tools/conform_molecules.py: read_molecules < lines
//
// Prints the molecule of each line: a word per atom ("C,2,0,1,0,1,0": element, hydrogens, charge,
// is aromatic, isotope, is in a ring, is marked as a stereocentre), a TAB, a word per bond
// ("0,1,:,1": two atoms, symbol of the type, is in a ring; a dative bond begins at the atom that
// gives the electrons), a TAB and the key. Prints "ERROR" and the message for a line that cannot be
// read.

#include <fmt/format.h>

#include <iostream>
#include <string>
#include <utility>

#include "attend/base/error.h"
#include "attend/text/molecule.h"

namespace {

std::string line_of(const attend::Molecule& molecule) {
  std::string atoms, bonds;
  for (const attend::Atom& atom : molecule.atoms)
    atoms += fmt::format("{}{},{},{},{:d},{},{:d},{:d}", atoms.empty() ? "" : " ", atom.element,
                         atom.hydrogens, atom.charge, atom.is_aromatic, atom.isotope, atom.in_ring,
                         !atom.chirality.empty());
  for (const attend::Bond& bond : molecule.bonds) {
    auto ends = std::pair(bond.first, bond.second);
    if (bond.direction == '<') std::swap(ends.first, ends.second);
    bonds += fmt::format("{}{},{},{},{:d}", bonds.empty() ? "" : " ", ends.first, ends.second,
                         "-=#$:>~"[static_cast<size_t>(bond.type)], bond.in_ring);
  }
  return fmt::format("{}\t{}\t{}", atoms, bonds, attend::canonical_key(molecule));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) try {
      fmt::print("{}\n", line_of(attend::read_molecule(line)));
    } catch (const attend::Error& error) {
      fmt::print("ERROR {}\n", error.what());
    }
}
