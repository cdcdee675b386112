#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/source_kind.h"

namespace attend {

// Removes examples with an unreadable image or sound. Reports the reason for each, with the name of
// the file, and the number of examples. Returns the number removed. Error if nothing is left.
// `name` names the data in messages.
int64_t take_out_unreadable(std::vector<Example>& examples, FrameReader& reader,
                            const std::string& name, const Tell& tell);

}  // namespace attend
