#pragma once

#include <string>
#include <vector>

#include "attend/datasets/media_sets.h"

namespace attend {

// Pictures of one to five digits in a row, as wide as five images and as high as one. The row has a
// random position, and each digit is shifted by up to two pixels in each direction.
struct DigitRows : DrawnImages {};

// Writes part.idx, valid.idx and their tables; targets such as "3 1 4".
std::vector<WrittenTable> write_digit_rows(const DigitRows& rows);

// Pictures of two digits with a plus or minus sign between them, three images wide and one and a
// half high. Digits and sign have random positions, do not touch, and keep their order from left to
// right. A digit is cropped to its non-black pixels.
struct DigitSums : DrawnImages {};

// Writes part.idx, valid.idx and their tables; targets such as "three minus five is minus two". For
// each table also writes part-places.tsv with the places of the first three words of a target in
// the picture. Its lines are picture TAB word TAB top TAB left TAB height TAB width, in pixels.
// Error also if a label is not a digit or images have less than 8 pixels per side.
std::vector<WrittenTable> write_digit_sums(const DigitSums& sums);

}  // namespace attend
