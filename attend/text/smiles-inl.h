#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

// Returns the symbols of SMILES in order, ignoring leading white space and everything after the
// next white space. Error on an invalid symbol, and on brackets, branches and rings that are not
// closed.
std::vector<std::string> smiles_symbols(std::string_view text);

// Returns the ring number of a symbol such as "1", "%12" or "%(123)"; none for other symbols.
std::optional<int64_t> smiles_ring(std::string_view symbol);

}  // namespace attend::internal
