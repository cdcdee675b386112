#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Draws numbers as one line of up to `width` blocks of eight heights, lowest to highest. If there
// are more numbers, neighbours are averaged. A number that is not finite is a gap. Error on a width
// below 1.
std::string sparkline(const std::vector<double>& values, int64_t width);

}  // namespace attend
