#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attend {

// The records of metrics.jsonl in a model folder, an array of objects; other lines are skipped.
nlohmann::json read_history(const std::string& folder);

// A figure of a record that another program may have written; NaN where it is null, which is JSON's
// value for what is not finite, and 0 where it is no number.
double number(const nlohmann::json& record, const char* key);

// The losses of a history against the steps, as an SVG document.
std::string history_chart(const nlohmann::json& history);

}  // namespace attend
