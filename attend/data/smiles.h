#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// The symbols of a molecule written as SMILES (Weininger 1988; opensmiles.org): an atom, of one
// letter or two ("C", "Cl", "c"); brackets with their content ("[C@@H]"); the number of a ring's
// bond ("1", "%12"); a bond ("="), a branch ("(", ")") and the dot between parts. White space
// around the molecule is left out. Error as read_molecule.
std::vector<std::string> split_smiles(std::string_view text);

}  // namespace attend
