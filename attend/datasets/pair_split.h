#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/text_config.h"
#include "attend/datasets/media_sets.h"

namespace attend {

// How pairs are divided among train.tsv, valid.tsv and test.tsv.
struct PairSplit {
  PairFiles files;
  std::string folder;       // folder to write into, created if missing
  std::string column = {};  // column of a table with train, valid or test; empty: drawn at random
  uint64_t seed = 1;        // random seed; 80, 10 and 10 per cent of the sources are drawn
  // Its source_units determine which sources are equal; pairs and target, the form of a line.
  TextConfig text = {};
};

// Writes the three tables, each in the order of the files. If parts are drawn, all pairs with
// sources of equal keys (source_key) are in one part. A remark reports sources that are split as
// texts and are several spellings of molecules. If sources name images or sounds, relative names
// become relative to the new folder, with a remark. Errors, before anything is written: as
// read_pairs with pair_check, a part without pairs, another word in the column, a text with a TAB.
std::vector<WrittenTable> split_pairs(const PairSplit& split, const Tell& tell = {});

}  // namespace attend
