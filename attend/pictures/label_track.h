#pragma once

#include <string>

#include "attend/pictures/alignment.h"

namespace attend {

// The tokens of a text in lines of 60, the label of each below it, and below that a block as high
// as the weights that all labels have on the token: the residues of a protein, say, with their
// structure. Error unless there is a label for each token, and each of them takes one column of a
// terminal.
std::string label_track(const Alignment& alignment);

}  // namespace attend
