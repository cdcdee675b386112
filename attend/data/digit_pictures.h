#pragma once

#include <string>
#include <vector>

#include "attend/data/media_sets.h"

namespace attend {

// Pictures of one to five digits side by side, as wide as five images and as high as one. The row
// begins anywhere where it fits, and each digit is moved by up to two pixels either way.
struct DigitRows : DrawnImages {};

// part.idx, valid.idx and their tables; targets such as "3 1 4".
std::vector<WrittenTable> write_digit_rows(const DigitRows& rows);

// Pictures of two digits and the sign of plus or minus between them, three images wide and one and
// a half high. Each has a random place, without touching the others, and keeps the order from
// left to right. A digit is the smallest part of its image that holds all pixels not black.
struct DigitSums : DrawnImages {};

// part.idx, valid.idx and their tables; targets such as "three minus five is minus two". For each
// table also part-places.tsv: where the first three words of a target are in the picture, a line
// each of picture TAB word TAB top TAB left TAB height TAB width, in pixels. Error also on a label
// that is no digit and on images of less than 8 pixels a side.
std::vector<WrittenTable> write_digit_sums(const DigitSums& sums);

}  // namespace attend
