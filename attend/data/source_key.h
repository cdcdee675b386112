#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/text_config.h"

namespace attend {

// Returns a text that is equal for sources that are spellings of one thing: canonical_key of
// molecules (data.source_units "smiles" or "molecule"), else the source in NFC. Errors as
// read_molecule.
std::string source_key(const std::string& source, const TextConfig& text);

// Returns how many sources are molecules that the sources contain in another spelling; 0 if one of
// them is no molecule.
int64_t count_spellings(const std::vector<std::string>& sources);

}  // namespace attend
