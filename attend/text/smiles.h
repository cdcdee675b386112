#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// Returns the symbols of a molecule in SMILES (Weininger 1988; opensmiles.org): an atom of one or
// two letters ("C", "Cl", "c"); a bracket with its content ("[C@@H]"); the number of a ring bond
// ("1", "%12"); a bond ("="), a branch ("(", ")") and the dot between parts. White space around the
// molecule is ignored. Errors as read_molecule.
std::vector<std::string> split_smiles(std::string_view text);

}  // namespace attend
