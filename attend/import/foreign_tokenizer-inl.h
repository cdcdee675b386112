#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/data/text_tokenizer.h"
#include "attend/data/vocabulary.h"
#include "attend/import/hub_folder-inl.h"

namespace attend::internal {

constexpr int64_t maximum_vocabulary_bytes = int64_t{256} << 20;

struct ForeignTokenizer {
  TextTokenizer tokenizer;
  std::optional<int32_t> mask = {};          // the id of the token that hides another
  std::optional<TextTokenizer> target = {};  // of answers, where they have one of their own
  // What a Vocabulary calls their tokens, by id, where no tokenizer says it.
  std::vector<std::string> names = {};
  std::optional<int32_t> unknown = {};  // its id among these

  int32_t size() const;
  std::string name(int32_t id) const;
};

// The tokenizer of the folder: tokenizer.json, or what is made of vocab.txt and
// tokenizer_config.json. Errors as Tokenizer::load, and where neither is there, and where
// tokenizer.json and tokenizer_config.json say different things.
ForeignTokenizer read_foreign_tokenizer(const std::string& folder);

// The tokens in the order of the list, whatever else a vocabulary orders them by. Error, naming the
// folder, on two of one name.
Vocabulary in_order(const std::vector<std::string>& names, const std::string& folder);

// The same of source.spm, target.spm and vocab.json, as Marian's translators have them. Errors as
// MarianTokenizer::parse and parse_vocabulary, where one is missing, and where
// tokenizer_config.json names other special tokens or settings that are not honoured.
ForeignTokenizer read_side_tokenizers(const std::string& folder);

// A special token that a file names, as text or as an object with its content; "" where it does
// not.
std::string special_token(const std::optional<JsonFile>& file, const char* key);

}  // namespace attend::internal
