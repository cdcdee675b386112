#pragma once

#include <string>
#include <vector>

#include "attend/data/pairs.h"

namespace attend {

// The pairs of a TSV or CSV file. With `sources_are_files`, the images and sounds that it names are
// in its folder, unless they begin with a slash. Errors as read_pairs.
std::vector<Example> read_table(const PairFiles& file, bool sources_are_files,
                                const PairOptions& options = {});

// Returns whether a path names a text and not pairs: a folder with train.txt or test.txt, or a file
// whose name, without .gz or .xz, ends in neither .tsv nor .csv.
bool names_text(const std::string& path);

// The lines of a text that are not blank, each its own target.
std::vector<Example> lines_of(const std::string& text);

}  // namespace attend
