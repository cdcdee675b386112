#pragma once

#include <string>

#include "attend/inference/model.h"

namespace attend {

// Prints what a language model gives to a text, or what an encoder gives to what is hidden from it
// of each line (of a TSV file, of each source): as JSON or for a person. Error on a text that
// cannot be read, and on several encoders.
void evaluate_text(const Model& model, const std::string& data, bool as_json);

}  // namespace attend
