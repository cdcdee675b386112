#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// Splits a target into the names of its labels; a blank target lacks labels. White space around a
// name is ignored. A blank separator makes each word a label. Error on an empty name, and if a
// label occurs twice.
std::vector<std::string> split_labels(std::string_view target, std::string_view separator);

}  // namespace attend
