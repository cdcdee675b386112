#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/source_kind.h"

namespace attend {

// Removes the examples whose image or sound cannot be read from each part of some data, and reports
// the reason for each, which names the file, and their number. Returns how many it removed. Error
// where a part has no others; `name` is the data's, for messages.
int64_t take_out_unreadable(const std::vector<std::vector<Example>*>& parts, FrameReader& reader,
                            const std::string& name, const Tell& tell);

}  // namespace attend
