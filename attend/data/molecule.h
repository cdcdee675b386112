#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

struct Atom {
  std::string element;  // as the periodic table has it, "Cl"; "*": any
  bool is_aromatic = false;
  int64_t isotope = 0;    // 0: none is written
  std::string chirality;  // as it is written: "", "@", "@@", "@TH1", ..
  int64_t hydrogens = 0;  // that belong to it and are no atoms of their own: as many as brackets
                          // say; without brackets as the usual valences leave free
  int64_t charge = 0;
  bool in_ring = false;
  std::string text;  // "Cl", "[NH4+]"
};

enum class BondType { single, twofold, threefold, fourfold, aromatic };

// Its ends are numbers of atoms; `first` stands before `second` in the text.
struct Bond {
  int64_t first = 0, second = 0;
  BondType type = BondType::single;
  char direction = 0;  // '/' or '\\' from `first` to `second`; 0: neither
  bool in_ring = false;
};

// A molecule, or several that a dot sets apart.
struct Molecule {
  std::vector<Atom> atoms;  // in the order of the text
  std::vector<Bond> bonds;
};

// Reads SMILES (Weininger 1988; opensmiles.org). A bond that is not written is aromatic where it is
// in a ring and its atoms are aromatic, else single. White space around the molecule is left out; a
// text of nothing else has no atoms. Error that names what cannot be read: a symbol that SMILES has
// not; a bracket, a branch or a ring that is not closed; an element that there is not; a bracket in
// another order than [isotope element chirality H charge :class]; a bond, a branch or the number of
// a ring where an atom is missing before or behind it; a ring that begins and ends at one atom; two
// bonds between the same atoms; a ring whose two ends have different bonds.
Molecule read_molecule(std::string_view smiles);

}  // namespace attend
