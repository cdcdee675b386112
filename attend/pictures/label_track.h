#pragma once

#include <string>

#include "attend/pictures/alignment.h"

namespace attend {

// Returns the tokens of a text in lines of 60. Below each token are its label and a block as high
// as the sum of all labels' weights on it: for example the residues of a protein with their
// structure. Error unless each token has a label, and each of both takes one column of a terminal.
std::string label_track(const Alignment& alignment);

}  // namespace attend
