#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "attend/tokenizers/tokenizer.h"

namespace attend {

// What the special tokens of a model are called; "" where it has none of the kind.
struct SpecialTokens {
  std::string unknown = {};
  std::string begin = {};  // in front of a text
  std::string end = {};    // behind it
  std::string padding = {};
  std::string mask = {};
};

// BERT's older files: vocab.txt, one token a line, and what tokenizer_config.json says beside it.
struct WordPieceFiles {
  std::string vocabulary;
  bool lowercase = true;
  std::optional<bool> strip_accents = {};  // without it as `lowercase`
  bool separate_cjk = true;
  SpecialTokens special = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
};

// Errors name the file: a token that is empty, no UTF-8 or there twice, a special one that is
// missing.
Tokenizer load_tokenizer(const WordPieceFiles& files);
// The same for the bytes of a vocabulary; messages call it as `files` does.
Tokenizer parse_tokenizer(std::string_view vocabulary, const WordPieceFiles& files);

// GPT-2's older files: vocab.json, an object of ids, and merges.txt, two tokens a line, the
// earliest merge first. RoBERTa's are the same with <s> and </s> around texts.
struct ByteLevelFiles {
  std::string vocabulary;
  std::string merges;
  bool prefix_space = false;  // a text begins with a space, as add_prefix_space says
  SpecialTokens special = {"<|endoftext|>"};
};

// Errors as above, and: ids with holes or twice, a line that is no merge, by its number.
Tokenizer load_tokenizer(const ByteLevelFiles& files);
Tokenizer parse_tokenizer(std::string_view vocabulary, std::string_view merge_lines,
                          const ByteLevelFiles& files);

}  // namespace attend
