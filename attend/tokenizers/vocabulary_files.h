#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/json.h"

namespace attend {

// Convert the files of models from before tokenizer.json into one. Errors name the file and, if it
// has lines, the line: a token that is empty, not UTF-8 or a duplicate, a missing special token.

// Names of a model's special tokens; "" if it lacks the kind.
struct SpecialTokenNames {
  std::string unknown = {};
  std::string begin = {};  // before a text
  std::string end = {};    // after a text
  std::string padding = {};
  std::string mask = {};
};

// Tokens that are found in a text before it is split.
struct OlderTokens {
  SpecialTokenNames special = {};
  // Entries as in "added_tokens" of a tokenizer.json. They may describe special tokens further.
  // They need an id if the vocabulary lacks them.
  Json added = Json::array();
};

// BERT: vocab.txt, one token per line, and settings of the tokenizer_config.json next to it.
struct WordPieceFiles {
  std::string vocabulary = {};  // path, for messages
  bool lowercase = true;
  std::optional<bool> strip_accents = {};  // if unset, as `lowercase`
  bool separate_cjk = true;
  bool two_ends = false;  // MPNet: two texts have two ends between them, and the mask takes a space
  OlderTokens tokens = {.special = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"}};
};
Json tokenizer_json(std::string_view vocabulary, const WordPieceFiles& files);

// ESM-2: vocab.txt, one token per line. A text is split at all of them, the longest first, and at
// white space; other characters are unknown. Decoding concatenates tokens.
struct TokenListFiles {
  std::string vocabulary = {};  // path, for messages
  OlderTokens tokens = {.special = {"<unk>", "<cls>", "<eos>", "<pad>", "<mask>"}};
};
Json tokenizer_json(std::string_view vocabulary, const TokenListFiles& files);

// GPT-2: vocab.json, an object of ids, and merges.txt, two tokens per line, the earliest merge
// first. RoBERTa has the same files, with <s> and </s> around texts.
struct ByteLevelFiles {
  std::string vocabulary = {};
  std::string merges = {};
  bool prefix_space = false;  // prepends a space to a text, as add_prefix_space
  OlderTokens tokens = {.special = {.unknown = "<|endoftext|>"}};
};
// Errors also on missing or duplicate ids and on a line that is not a merge.
Json tokenizer_json(std::string_view vocabulary, std::string_view merges,
                    const ByteLevelFiles& files);

// ALBERT changes texts before it splits them into pieces.
struct TextRules {
  bool lowercase = true;
  bool keep_accents = false;
};

// XLM-R, CamemBERT, DeBERTa-v2 and mBART-50: a unigram model of SentencePiece, with other ids for
// the pieces; T5, with more tokens after them; ALBERT, with rules of its own for texts. Unlike
// SentencePiece, the tokenizer normalises by graphemes.
struct PieceFiles {
  std::string model;
  std::vector<std::string> first = {};  // tokens that replace the first pieces
  size_t replaced = 0;                  // number of pieces they replace
  std::vector<std::string> last = {};   // special tokens that follow the pieces
  bool prefix_space = true;
  std::optional<TextRules> rules = {};  // ALBERT's; two texts then have types of tokens
  // As DeBERTa-v2's: tokens around texts and pairs as BERT's; the mask keeps the space before it;
  // spaces at the ends are removed, and runs of spaces become one.
  bool like_bert = false;
  bool lowercase = false;  // only with like_bert
  // As mBART-50's: runs of spaces become one, and spaces at the ends are kept.
  bool keeps_spaces = false;
  OlderTokens tokens = {};  // the mask follows the pieces unless it is one of them
};
// Errors also as SentencePiece::parse, on byte pairs, and on fewer pieces than are replaced.
Json tokenizer_json(std::string_view model, const PieceFiles& files);

// ByT5: the tokens are bytes. Their ids follow padding, end and unknown; the tokens of `last`
// follow them.
struct ByteFiles {
  std::string name;  // name of the folder, for messages
  std::vector<std::string> last = {};
  OlderTokens tokens = {};
};
Json tokenizer_json(const ByteFiles& files);

}  // namespace attend
