#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

struct Atom {
  std::string element;  // as in the periodic table, e.g. "Cl"; "*": any
  bool is_aromatic = false;
  int64_t isotope = 0;    // 0: not written
  std::string chirality;  // as written: "", "@", "@@", "@TH1", ..
  int64_t hydrogens = 0;  // number of hydrogens that are not separate atoms
  int64_t charge = 0;
  bool in_ring = false;
  std::string text;  // "Cl", "[NH4+]"
};

// dative: one atom gives both electrons (-> or <-). any: ~ in SMILES.
enum class BondType { single, twofold, threefold, fourfold, aromatic, dative, any };

// The ends are indices of atoms; `first` comes before `second` in the text.
struct Bond {
  int64_t first = 0, second = 0;
  BondType type = BondType::single;
  // '/' or '\\' from `first` to `second`. For a dative bond '>' if `first` gives the electrons, '<'
  // if `second` does. Otherwise 0.
  char direction = 0;
  bool in_ring = false;  // never for dative bonds
};

// A molecule, or several that are separated by dots.
struct Molecule {
  std::vector<Atom> atoms;  // in the order of the text
  std::vector<Bond> bonds;
};

// Returns the number of lines that draw a bond: 1 to 4; 1 for aromatic, dative and any.
int64_t lines_of(BondType type);

// Reads SMILES (Weininger 1988; opensmiles.org). The result does not depend on the spelling of the
// molecule, except for the order of atoms and bonds, `text`, `direction` and the turn named by
// `chirality`:
// - A hydrogen atom with one bond, without isotope and charge, becomes a hydrogen of the atom that
//   it is bound to, unless that is a hydrogen or "*".
// - Charges of nitro groups, azides, N-oxides and oxygen acids of halogens are separated:
//   N(=O)=O is read as [N+](=O)[O-].
// - Written aromaticity is replaced by perceived aromaticity (RDKit's model): rings and fused rings
//   with 4n+2 electrons. It stays as written if the written lower-case letters allow no double
//   bonds, or a ring system has too many rings to search.
// An atom without brackets has the hydrogens that its usual valences leave free. White space before
// the molecule is ignored. Text after the next white space is its name and is ignored, too. A text
// without SMILES has no atoms.
// Error, naming the invalid part: an invalid symbol; a bracket, branch or ring that is not closed;
// an unknown element; a bracket in another order than
// [isotope element chirality H charge :class]; a bond, branch or ring number without an atom before
// it; a bond without an atom after it; a branch that does not begin with a bond or an atom; a ring
// that begins and ends at one atom; two bonds between the same atoms; a ring with different bonds
// at its two ends.
Molecule read_molecule(std::string_view smiles);

// Returns a text that is equal for all spellings of a molecule and differs between molecules. It
// distinguishes what a model with data.source_units = "molecule" reads, which excludes the turns of
// stereocentres and the directions of double bonds. A molecule of very high symmetry (over 2,000
// atom orders to compare) may have several keys.
std::string canonical_key(const Molecule& molecule);

}  // namespace attend
