#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attend/data/text_tokenizer.h"
#include "attend/data/vocabulary.h"
#include "attend/import/foreign_model-inl.h"
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

// What files beside a tokenizer's own say of it.
struct TokenizerSettings {
  std::optional<JsonFile> config;   // tokenizer_config.json
  std::optional<JsonFile> special;  // special_tokens_map.json
  std::optional<JsonFile> added;    // added_tokens.json
  bool lowercase = false;           // texts are put into lower case before all else
};
TokenizerSettings read_tokenizer_settings(const std::string& folder);

// Where they name a special token, as text or as the content of an object.
std::optional<JsonPlace> special_place(const TokenizerSettings& settings, const char* key);
// The same as text; "" where they do not.
std::string special_token(const TokenizerSettings& settings, const char* key);

// The tokens that these files describe, as entries of "added_tokens" of a tokenizer.json; `id` only
// if a file says it. The first has those of added_tokens_decoder, the second all, special tokens
// included.
Json described_tokens(const TokenizerSettings& settings);
Json named_tokens(const TokenizerSettings& settings);

// The bytes of a tokenizer.json, changed to what these files say instead, as transformers reads
// them. Error, naming the key, where its versions 4 and 5 differ, and on special tokens around
// texts that differ.
std::string settled_tokenizer(std::string bytes, const std::string& path,
                              const TokenizerSettings& settings);

// The special tokens before a text and after it, as the post_processor of a tokenizer.json has
// them; "" for none.
std::pair<std::string, std::string> tokens_around(const Json& post_processor);

// How many tokens of a text are read, as model_max_length says. Error on less than 1.
std::optional<int64_t> longest_text(const TokenizerSettings& settings);

// Reads the folder's tokenizer.json, or makes one of its older files, and settles it. Errors as
// Tokenizer::load, older_tokenizer and settled_tokenizer.
ForeignTokenizer read_foreign_tokenizer(const std::string& folder,
                                        const TokenizerSettings& settings, const OlderNames& names);

// The tokenizer.json of vocab.txt, of vocab.json and merges.txt, or of sentencepiece.bpe.model.
// Errors as tokenizer_json, and where none of them is there, and on settings that are not honoured.
std::string older_tokenizer(const std::string& folder, const TokenizerSettings& settings,
                            const OlderNames& names);

// The tokens in the order of the list, whatever else a vocabulary orders them by. Error, naming the
// folder, on two of one name.
Vocabulary in_order(const std::vector<std::string>& names, const std::string& folder);

// The same of source.spm, target.spm and vocab.json, as Marian's translators have them, with the
// tokens that were added. Errors as MarianTokenizer::parse and parse_vocabulary, where one is
// missing, and where tokenizer_config.json names other special tokens or settings that are not
// honoured.
ForeignTokenizer read_side_tokenizers(const std::string& folder, const TokenizerSettings& settings);

}  // namespace attend::internal
