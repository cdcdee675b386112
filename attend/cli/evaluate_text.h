#pragma once

#include <string>

#include "attend/cli/decode_options.h"
#include "attend/models/pair_model.h"

namespace attend {

// Prints what a language model, with the others of options.models, gives to a text, or what an
// encoder gives to what is hidden from it of each line (of a TSV file, of each source): as JSON or
// for a person. Error on a text that cannot be read, and on several encoders.
void evaluate_text(const DecodeOptions& options, const PairModel& model, const std::string& data,
                   bool as_json);

}  // namespace attend
