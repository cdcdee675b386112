#pragma once

#include <optional>
#include <vector>

#include "attend/text/molecule.h"

namespace attend::internal {

// Indices of the bonds of each atom.
using AtomBonds = std::vector<std::vector<size_t>>;
AtomBonds bonds_of_atoms(const Molecule& molecule);

inline size_t first_of(const Bond& bond) { return static_cast<size_t>(bond.first); }
inline size_t second_of(const Bond& bond) { return static_cast<size_t>(bond.second); }
inline size_t other_end(const Bond& bond, size_t atom) {
  return first_of(bond) == atom ? second_of(bond) : first_of(bond);
}

// Returns the valences that a bond uses at one end; 1 if aromatic.
int64_t taken_by(const Bond& bond, size_t end);

// Sets `in_ring` of atoms and bonds. Dative bonds are not in a ring.
void mark_rings(Molecule& molecule);

struct Ring {
  std::vector<size_t> atoms, bonds;  // sorted
};

// Returns the rings that are not sums of smaller rings (Vismara 1997), smallest first. Requires
// mark_rings. Returns nothing if there are too many rings to search.
std::optional<std::vector<Ring>> relevant_rings(const Molecule& molecule);

// Returns whether the element is in the periodic table or "*".
bool is_element(const Atom& atom);
// 0 for "*".
int64_t atomic_number(const Atom& atom);
// Returns the usual valences of the element, ascending; empty if it lacks them.
std::vector<int64_t> usual_valences(int64_t atomic_number);
// Number of electrons outside the noble gas core and full d and f shells.
int64_t outer_electrons(int64_t atomic_number);

// Converts hydrogen atoms to hydrogens of their neighbours.
void merge_hydrogens(Molecule& molecule);
// Separates the charges of nitro groups and similar groups.
void separate_charges(Molecule& molecule);
// Replaces written aromaticity by perceived aromaticity. Requires mark_rings.
void perceive_aromaticity(Molecule& molecule);

// Removes chirality from atoms that are not stereocentres: nitrogen that inverts, and atoms with
// two equivalent neighbours outside a ring. Requires mark_rings.
void remove_false_centres(Molecule& molecule);

// Replaces aromatic bonds by single and double bonds. A system of aromatic bonds stays unchanged if
// not all its atoms can have the valences that they need.
void write_double_bonds(Molecule& molecule, const AtomBonds& bonds);

}  // namespace attend::internal
