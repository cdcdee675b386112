#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

// The symbols of SMILES in the order of the text, white space around them left out. Error on what
// is no symbol, and on brackets, branches and rings that are not closed.
std::vector<std::string> smiles_symbols(std::string_view text);

}  // namespace attend::internal
