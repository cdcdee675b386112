#pragma once

#include <optional>
#include <string>

#include "attend/data/text_tokenizer.h"

namespace attend::internal {

struct ForeignTokenizer {
  TextTokenizer tokenizer;
  std::optional<int32_t> mask;  // the id of the token that hides another
};

// The tokenizer of the folder: tokenizer.json, or what is made of vocab.txt and
// tokenizer_config.json. Errors as Tokenizer::load, and where neither is there, and where
// tokenizer.json and tokenizer_config.json say different things.
ForeignTokenizer read_foreign_tokenizer(const std::string& folder);

}  // namespace attend::internal
