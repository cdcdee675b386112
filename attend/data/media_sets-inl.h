#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/media_sets.h"

namespace attend::internal {

// What is drawn for one table: `count` examples, of the images `first` to `last` - 1.
struct DrawnPart {
  std::string name;
  int64_t count, first, last;
  int64_t stream;  // of random numbers
};

// The part that is asked for and, where some are to be drawn for validation, "valid", to which the
// last tenth of the images then belongs.
std::vector<DrawnPart> drawn_parts(const DrawnImages& drawn, const LabelledImages& images);

int label_of(const LabelledImages& set, int64_t index);

// name.tsv in the folder.
WrittenTable write_table(const std::string& folder, const std::string& name,
                         const std::vector<std::string>& lines);

}  // namespace attend::internal
