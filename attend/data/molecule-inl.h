#pragma once

#include <optional>
#include <vector>

#include "attend/data/molecule.h"

namespace attend::internal {

// The bonds of each atom, as indices.
using AtomBonds = std::vector<std::vector<size_t>>;
AtomBonds bonds_of_atoms(const Molecule& molecule);

inline size_t first_of(const Bond& bond) { return static_cast<size_t>(bond.first); }
inline size_t second_of(const Bond& bond) { return static_cast<size_t>(bond.second); }
inline size_t other_end(const Bond& bond, size_t atom) {
  return first_of(bond) == atom ? second_of(bond) : first_of(bond);
}

// The valences that a bond takes of one of its ends; 1 of an aromatic bond.
int64_t taken_by(const Bond& bond, size_t end);

// Sets `in_ring` of atoms and bonds; dative bonds are in no ring.
void mark_rings(Molecule& molecule);

struct Ring {
  std::vector<size_t> atoms, bonds;  // sorted
};

// Rings that are no sum of smaller rings (Vismara 1997), smallest first. Needs mark_rings. Nothing
// if there are too many rings to search.
std::optional<std::vector<Ring>> relevant_rings(const Molecule& molecule);

// Whether the element is in the periodic table or "*".
bool is_element(const Atom& atom);
// 0 of "*".
int64_t atomic_number(const Atom& atom);
// The usual valences of that element, ascending; none if there are no usual ones.
std::vector<int64_t> usual_valences(int64_t atomic_number);
// Electrons outside of the noble gas core and full d and f shells.
int64_t outer_electrons(int64_t atomic_number);

// Makes hydrogen atoms into hydrogens of their neighbours.
void merge_hydrogens(Molecule& molecule);
// Separates the charges of nitro groups and the like.
void separate_charges(Molecule& molecule);
// Replaces written aromaticity by perceived aromaticity. Needs mark_rings.
void perceive_aromaticity(Molecule& molecule);

// Removes the marks of atoms that are no stereocentres: nitrogen that turns over, and atoms with
// two equal neighbours outside of a ring. Needs mark_rings.
void remove_false_centres(Molecule& molecule);

// Replaces aromatic bonds by single and double bonds; a system of aromatic bonds whose atoms cannot
// all have the valences that they need stays as it is.
void write_double_bonds(Molecule& molecule, const AtomBonds& bonds);

}  // namespace attend::internal
