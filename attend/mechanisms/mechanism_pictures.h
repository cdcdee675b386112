#pragma once

#include <cstddef>
#include <string>

namespace attend {

// Draws NAME.svg for every mechanism and legend.svg into the folder; returns the number of
// mechanisms. Each mechanism is fitted to the sentence pair in pair.json of the folder, with one
// thread and a fixed seed, as described in docs/mechanisms.md. Error if the pair cannot be read.
size_t draw_mechanisms(const std::string& folder);

}  // namespace attend
