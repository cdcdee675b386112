#pragma once

#include <string>

#include "attend/inference/model.h"

namespace attend {

// Measures a language model on a text, or an encoder on the hidden tokens of each line of a text or
// of each source of a TSV file, and prints the figures: as JSON or for a person. Error on a file
// that cannot be read.
void evaluate_text(const Model& model, const std::string& data, bool as_json);

}  // namespace attend
