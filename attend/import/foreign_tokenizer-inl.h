#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/data/text_tokenizer.h"
#include "attend/data/vocabulary.h"

namespace attend::internal {

struct ForeignTokenizer {
  TextTokenizer tokenizer;
  std::optional<int32_t> mask;  // the id of the token that hides another
};

// The tokenizer of the folder: tokenizer.json, or what is made of vocab.txt and
// tokenizer_config.json. Errors as Tokenizer::load, and where neither is there, and where
// tokenizer.json and tokenizer_config.json say different things.
ForeignTokenizer read_foreign_tokenizer(const std::string& folder);

// The tokens in the order of the list, whatever else a vocabulary orders them by. Error, naming the
// folder, on two of one name.
Vocabulary in_order(const std::vector<std::string>& names, const std::string& folder);

}  // namespace attend::internal
