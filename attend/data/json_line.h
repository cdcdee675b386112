#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attend {

// A document in one line, without its end. What is no UTF-8 in it, as a path need not be, becomes
// U+FFFD.
std::string json_line(const nlohmann::json& document);
std::string json_line(const nlohmann::ordered_json& document);

}  // namespace attend
