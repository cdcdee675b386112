#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/json.h"

namespace attend {

// The files that models had before tokenizer.json, made into one. Errors name the file, and the
// line where there are lines: a token that is empty, no UTF-8 or there twice, a special one that is
// missing.

// What the special tokens of a model are called; "" where it has none of the kind.
struct SpecialTokens {
  std::string unknown = {};
  std::string begin = {};  // in front of a text
  std::string end = {};    // behind it
  std::string padding = {};
  std::string mask = {};
};

// Which tokens are found in a text before it is split.
struct OlderTokens {
  SpecialTokens special = {};
  // Entries as "added_tokens" of a tokenizer.json has them. They say more of tokens that are
  // special anyway, and need an id where the vocabulary has none for them.
  Json added = Json::array();
};

// BERT's: vocab.txt, one token a line, and what tokenizer_config.json says beside it.
struct WordPieceFiles {
  std::string vocabulary = {};  // its path, for messages
  bool lowercase = true;
  std::optional<bool> strip_accents = {};  // without it as `lowercase`
  bool separate_cjk = true;
  OlderTokens tokens = {.special = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"}};
};
Json tokenizer_json(std::string_view vocabulary, const WordPieceFiles& files);

// GPT-2's: vocab.json, an object of ids, and merges.txt, two tokens a line, the earliest merge
// first. RoBERTa's are the same with <s> and </s> around texts.
struct ByteLevelFiles {
  std::string vocabulary = {};
  std::string merges = {};
  bool prefix_space = false;  // a text begins with a space, as add_prefix_space says
  OlderTokens tokens = {.special = {.unknown = "<|endoftext|>"}};
};
// Errors too: ids with holes or twice, a line that is no merge.
Json tokenizer_json(std::string_view vocabulary, std::string_view merges,
                    const ByteLevelFiles& files);

// XLM-R's and CamemBERT's: a unigram model of SentencePiece, whose pieces have other ids. The
// tokenizer works by graphemes where SentencePiece does not.
struct PieceFiles {
  std::string model;
  std::vector<std::string> first = {};  // tokens in the place of the first pieces
  size_t replaced = 0;                  // so many of these
  bool prefix_space = true;
  OlderTokens tokens = {};  // the mask follows upon the pieces
};
// Errors too: as SentencePiece::parse, byte pairs, fewer pieces than are replaced.
Json tokenizer_json(std::string_view model, const PieceFiles& files);

}  // namespace attend
