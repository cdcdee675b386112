#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/data/frame_config.h"
#include "attend/data/pairs.h"

namespace attend {

// Takes out the examples whose image or sound cannot be read and tells the reason of each, which
// names the file. A configuration without a size takes that of the first image that can be read.
// Returns how many it took out.
int64_t take_out_unreadable(std::vector<Example>& examples, bool images, FrameConfig& config,
                            const std::function<void(const std::string& reason)>& tell);

}  // namespace attend
