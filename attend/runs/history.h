#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attend {

// The records of metrics.jsonl in a model folder, as an array of objects; other lines are skipped.
nlohmann::json read_history(const std::string& folder);

// A number from a record that another program may have written. NaN for null, JSON's value for
// numbers that are not finite; 0 if it is missing or not a number.
double number(const nlohmann::json& record, const char* key);

// The losses of a history by step, as an SVG document.
std::string history_chart(const nlohmann::json& history);

}  // namespace attend
