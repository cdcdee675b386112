#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attend {

// The records of metrics.jsonl in a model folder, an array of objects; lines that are none are
// passed over.
nlohmann::json read_history(const std::string& folder);

// A figure of a record that another program may have written; NaN where it is null, as JSON has
// what is not finite, and 0 where it is none.
double number(const nlohmann::json& record, const char* key);

// The losses of a history against the steps, as an SVG document.
std::string history_chart(const nlohmann::json& history);

}  // namespace attend
