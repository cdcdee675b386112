#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/media_sets.h"
#include "attend/data/pairs.h"
#include "attend/data/text_config.h"

namespace attend {

// How pairs are shared out among train.tsv, valid.tsv and test.tsv.
struct PairSplit {
  PairFiles files;
  std::string folder;       // that is written into, and made where it is missing
  std::string column = {};  // of a CSV file: where each row says train, valid or test; empty: drawn
  uint64_t seed = 1;        // of what is drawn: 80, 10 and 10 per cent of the sources
  TextConfig text = {};     // its source_units decide which sources are equal
};

// Writes the three tables, each in the order of the files. If parts are drawn, all pairs whose
// sources have equal keys (source_key) are in one part. `tell` gets a remark if sources that are
// split as texts are several spellings of molecules. Errors as read_pairs with pair_check, and on a
// part without pairs, another word in the column and a text with a TAB, before anything is written.
std::vector<WrittenTable> split_pairs(const PairSplit& split, const Tell& tell = {});

}  // namespace attend
