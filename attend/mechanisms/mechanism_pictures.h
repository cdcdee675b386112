#pragma once

#include <cstddef>
#include <string>

namespace attend {

// Draws NAME.svg of every mechanism and legend.svg into the folder, from the sentence pair in its
// pair.json, and says how many: each row fitted to the pair on one thread from a fixed seed, as
// docs/mechanisms.md describes. Error when the pair does not read.
size_t draw_mechanisms(const std::string& folder);

}  // namespace attend
