#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/split_data.h"
#include "attend/data/text_config.h"
#include "attend/data/units.h"

namespace attend {

// The pairs of files as a model reads them: those of one source are one example where
// text.references is merged, and the images and sounds that a table names are in its folder,
// unless they begin with a slash. A folder of pairs gives those of its test.tsv, and data of
// another format the examples of its test. `bad` and errors as read_pairs, checked by files.check
// and pair_check, or as read_split.
std::vector<Example> read_examples(const PairFiles& files, const TextConfig& text,
                                   const Tell& tell = {}, int64_t* bad = nullptr);

// The same of all parts, of a format that is split (DataFormatRow::is_split): files.source is what
// is read. Error where `files` says more, or is no folder where that is wanted, or the reverse, on
// `bad` where no line can be left out, and as the reader of the format.
SplitData read_split(const PairFiles& files, const TextConfig& text, const Tell& tell = {},
                     int64_t* bad = nullptr);

// What PairFiles::check is of such pairs: an Error where a molecule cannot be read or a target is
// no number, where these are wanted; null where all texts are.
PairCheck pair_check(const TextConfig& text);

// The units that a setting such as data.source_units names, if a text may have no tokens of these
// (may_refuse); none for others and for images, sounds and sets.
std::optional<Units> refusing_units(const std::string& name);

// A check by one and then by the other; either may be null.
PairCheck both_checks(PairCheck first, PairCheck second);

// Returns whether a path names a text and not pairs: a folder with train.txt or test.txt, or a file
// whose name, without .gz or .xz, ends in none of .tsv, .csv, .conll and .conllu.
bool names_text(const std::string& path);

// Returns whether the label of a file's first line looks like a header's: no other line has it,
// while each other label is there more than once. `lines` counts those of each label.
bool is_header(const std::string& first, const std::unordered_map<std::string, int64_t>& lines);

// The lines of a text that are not blank, each its own target.
std::vector<Example> lines_of(const std::string& text);

}  // namespace attend
