#pragma once

#include <cstdint>
#include <string>

#include "attend/inference/model.h"

namespace attend {

// Measures a language model on a text, or an encoder on the hidden tokens of each line of a text or
// of each source of a TSV file, and prints the figures: as JSON or for a person. With `bad`,
// lines that cannot be read are told, left out and added to it; otherwise they are an Error.
void evaluate_text(const Model& model, const std::string& data, bool as_json, int64_t* bad);

}  // namespace attend
