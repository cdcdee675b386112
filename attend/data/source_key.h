#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/text_config.h"

namespace attend {

// Returns a text that is equal for equivalent sources: canonical_key of molecules
// (data.source_units "smiles" or "molecule"), otherwise the source in NFC. Errors as read_molecule.
std::string source_key(const std::string& source, const TextConfig& text);

// Returns the number of distinct sources minus the number of distinct molecules that they spell; 0
// if one of them is not a molecule.
int64_t count_spellings(const std::vector<std::string>& sources);

}  // namespace attend
