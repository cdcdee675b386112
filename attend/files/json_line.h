#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attend {

// Formats a document in one line, without a line end. Invalid UTF-8, which may occur in a path,
// becomes U+FFFD.
std::string json_line(const nlohmann::json& document);
std::string json_line(const nlohmann::ordered_json& document);

}  // namespace attend
