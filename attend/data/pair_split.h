#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/media_sets.h"
#include "attend/data/pairs.h"

namespace attend {

// How pairs are shared out among train.tsv, valid.tsv and test.tsv.
struct PairSplit {
  PairFiles files;
  std::string folder;       // that is written into, and made where it is missing
  std::string column = {};  // of a CSV file: where each row says train, valid or test; empty: drawn
  uint64_t seed = 1;        // of what is drawn: 80, 10 and 10 per cent of the sources
};

// Writes the three tables, each in the order of the files. All targets of a source are in one part
// where parts are drawn. Errors as read_pairs, and on a part without pairs, another word in the
// column and a text with a TAB, before anything is written.
std::vector<WrittenTable> split_pairs(const PairSplit& split);

}  // namespace attend
