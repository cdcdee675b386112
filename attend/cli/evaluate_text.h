#pragma once

#include <cstdint>
#include <string>

#include "attend/inference/model.h"

namespace attend {

// Evaluates a language model on a text, or an encoder on masked tokens of each line of a text or
// each source of a TSV file. Prints the figures as text or JSON. With `bad`, reports and skips
// unreadable lines and adds their number; otherwise they are an Error.
void evaluate_text(const Model& model, const std::string& data, bool as_json, int64_t* bad);

}  // namespace attend
