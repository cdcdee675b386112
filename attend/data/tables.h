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
#include "attend/text/units.h"

namespace attend {

// Returns the files with the form of lines that the configuration reads.
PairFiles in_form(PairFiles files, const TextConfig& text);

// Reads the pairs of files for a model. Pairs with the same source are one example if
// text.references is merged. Relative names of images and sounds are relative to the table's
// folder. For a folder of pairs, reads its test.tsv; for data of another format, the test examples.
// `bad` and errors as read_pairs, with the checks files.check and pair_check, or as read_split.
std::vector<Example> read_examples(const PairFiles& files, const TextConfig& text,
                                   const Tell& tell = {}, int64_t* bad = nullptr);

// Reads all parts of data in a format that is split (DataFormatRow::is_split) from files.source.
// Error if other members of `files` are set; if files.source is a file and the format needs a
// folder, or the reverse; on `bad` if lines cannot be skipped. Errors also as the format's reader.
SplitData read_split(const PairFiles& files, const TextConfig& text, const Tell& tell = {},
                     int64_t* bad = nullptr);

// Returns the PairFiles::check for the configuration: an Error if a molecule, a set or a numeric
// target is invalid, or an answer does not occur in its passage; null if all texts are valid.
PairCheck pair_check(const TextConfig& text);

// Returns the units of a setting such as data.source_units, if they may reject a text (may_refuse);
// none for other units and for images, sounds and sets.
std::optional<Units> refusing_units(const std::string& name);

// Returns a check by `first`, then by `second`; either may be null.
PairCheck both_checks(PairCheck first, PairCheck second);

// Returns whether a path names a text, not pairs: a folder with train.txt or test.txt, or a file
// with another suffix than a table (PairTable), .tsv, .conll or .conllu. A last suffix .gz
// or .xz is ignored.
bool names_text(const std::string& path);

// Returns whether the label of a file's first line looks like a header: it occurs once, and every
// other label more than once. `lines` has the number of lines per label.
bool is_header(const std::string& first, const std::unordered_map<std::string, int64_t>& lines);

// Returns the non-blank lines of a text, each as its own target.
std::vector<Example> lines_of(const std::string& text);

}  // namespace attend
