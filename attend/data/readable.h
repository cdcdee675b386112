#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/source_kind.h"

namespace attend {

// Removes examples with an unreadable image or sound from each part of the data. Reports the
// reason for each, with the name of the file, and the number of examples. Returns the number
// removed. Error if nothing is left of a part. `name` names the data in messages.
int64_t take_out_unreadable(const std::vector<std::vector<Example>*>& parts, FrameReader& reader,
                            const std::string& name, const Tell& tell);

}  // namespace attend
