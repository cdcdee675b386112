#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

struct Atom {
  std::string element;  // as in the periodic table, "Cl"; "*": any
  bool is_aromatic = false;
  int64_t isotope = 0;    // 0: not written
  std::string chirality;  // as written: "", "@", "@@", "@TH1", ..
  int64_t hydrogens = 0;  // number of hydrogens that are not atoms of their own
  int64_t charge = 0;
  bool in_ring = false;
  std::string text;  // "Cl", "[NH4+]"
};

// dative: one atom gives both electrons (-> or <-). any: ~ of SMILES.
enum class BondType { single, twofold, threefold, fourfold, aromatic, dative, any };

// The ends are indices of atoms; `first` stands before `second` in the text.
struct Bond {
  int64_t first = 0, second = 0;
  BondType type = BondType::single;
  // '/' or '\\' from `first` to `second`; of a dative bond '>' if `first` gives the electrons, '<'
  // if `second` does; 0: none.
  char direction = 0;
  bool in_ring = false;  // dative bonds are in no ring
};

// A molecule, or several that are separated by dots.
struct Molecule {
  std::vector<Atom> atoms;  // in the order of the text
  std::vector<Bond> bonds;
};

// Returns how many lines draw a bond: 1 to 4; an aromatic, dative or any bond has 1.
int64_t lines_of(BondType type);

// Reads SMILES (Weininger 1988; opensmiles.org) into a form that does not depend on how the
// molecule is written, except for the order of atoms and bonds, `text`, `direction` and the turn
// that `chirality` names:
// - A hydrogen atom with one bond, without isotope and charge, becomes one of the hydrogens of the
//   atom that it is bound to, unless that is a hydrogen or "*".
// - Charges of nitro groups, azides, N-oxides and oxygen acids of halogens are separated:
//   N(=O)=O is read as [N+](=O)[O-].
// - Written aromaticity is replaced by perceived aromaticity (RDKit's model): rings and fused rings
//   with 4n+2 electrons. Where the written small letters allow no double bonds, or a ring system
//   has too many rings to search, aromaticity stays as it is written.
// An atom without brackets has the hydrogens that its usual valences leave free. Text after the
// first white space is the name of the molecule and is ignored, and so is white space before it; a
// text without SMILES has no atoms. Error, naming what cannot be read: an invalid symbol; a
// bracket, branch or ring that is not closed; an unknown element; a bracket in another order than
// [isotope element chirality H charge :class]; a bond, branch or ring number without an atom before
// it; a bond without an atom after it; a branch that does not begin with a bond or an atom; a ring
// that begins and ends at one atom; two bonds between the same atoms; a ring with different bonds
// at its two ends.
Molecule read_molecule(std::string_view smiles);

// Returns a text that is equal for all spellings of a molecule and differs between molecules. It
// distinguishes what a model with data.source_units = "molecule" reads: neither the turns of
// stereocentres nor the directions of double bonds. A molecule of very high symmetry (over 2,000
// orders of its atoms to be compared) may have several.
std::string canonical_key(const Molecule& molecule);

}  // namespace attend
