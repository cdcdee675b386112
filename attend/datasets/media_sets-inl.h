#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/datasets/media_sets.h"
#include "attend/datasets/new_files.h"

namespace attend::internal {

// A table to draw: `count` examples from the images `first` to `last` - 1.
struct DrawnPart {
  std::string name;
  int64_t count, first, last;
  int64_t stream;  // stream of random numbers
};

// Returns the requested part. If validation examples are to be drawn, also returns "valid", with
// the last tenth of the images reserved for it.
std::vector<DrawnPart> drawn_parts(const DrawnImages& drawn, const LabelledImages& images);

int label_of(const LabelledImages& set, int64_t index);

// Adds name.tsv to the folder.
WrittenTable add_table(NewFolder& folder, const std::string& name,
                       const std::vector<std::string>& lines);

}  // namespace attend::internal
