#pragma once

#include <string>

#include "attend/models/pair_model.h"

namespace attend {

// The language of all answers of a model, if the token that begins them marks one; else empty.
std::string only_answer_language(const PairModel& model);

// The codec of answers in a language; the model's own if `language` is empty or
// only_answer_language(). Error as TextCodec::in_language(), and if all answers are in another
// language.
TextCodec answer_codec(const PairModel& model, const std::string& language);

}  // namespace attend
