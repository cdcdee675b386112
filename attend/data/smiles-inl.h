#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

// The symbols of SMILES in the order of the text, without white space before them and without what
// follows the first white space after them. Error on an invalid symbol, and on brackets, branches
// and rings that are not closed.
std::vector<std::string> smiles_symbols(std::string_view text);

// The number of the ring that a symbol names: "1", "%12" and "%(123)" do; others name none.
std::optional<int64_t> smiles_ring(std::string_view symbol);

}  // namespace attend::internal
