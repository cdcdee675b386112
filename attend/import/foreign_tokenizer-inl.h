#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attend/import/foreign_model-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/text/text_tokenizer.h"
#include "attend/text/vocabulary.h"

namespace attend::internal {

constexpr int64_t maximum_vocabulary_bytes = int64_t{256} << 20;

struct ForeignTokenizer {
  TextTokenizer tokenizer;
  std::optional<int32_t> mask = {};          // id of the mask token
  std::optional<TextTokenizer> target = {};  // for answers, if they have their own
  // Names of the tokens in a Vocabulary, by id, if no tokenizer provides them.
  std::vector<std::string> names = {};
  std::optional<int32_t> unknown = {};  // its id in `names`
  std::string source_language = {};     // default language of sources, if the model has languages

  int32_t size() const;
  std::string name(int32_t id) const;
};

// Settings in files next to a tokenizer's own.
struct TokenizerSettings {
  std::optional<JsonFile> config;                // tokenizer_config.json
  std::optional<JsonFile> special;               // special_tokens_map.json
  std::optional<JsonFile> added;                 // added_tokens.json
  bool lowercase = false;                        // texts are first converted to lower case
  const LanguageTokenizer* languages = nullptr;  // null: texts have no language
};
TokenizerSettings read_tokenizer_settings(const std::string& folder);

// Returns the place that names a special token, as text or as the content of an object; empty if
// there is none.
std::optional<JsonPosition> special_place(const TokenizerSettings& settings, const char* key);
// Returns the special token as text; "" if there is none.
std::string special_token(const TokenizerSettings& settings, const char* key);

// Return the tokens that these files describe, as entries of "added_tokens" of a tokenizer.json;
// `id` is set only if a file contains it. The first returns the tokens of added_tokens_decoder,
// the second all, special tokens included.
Json described_tokens(const TokenizerSettings& settings);
Json named_tokens(const TokenizerSettings& settings);

// Returns the bytes of a tokenizer.json after these settings were applied, as transformers does.
// Error, naming the key, if its versions 4 and 5 differ, and if the files name different special
// tokens around texts.
std::string settled_tokenizer(std::string bytes, const std::string& path,
                              const TokenizerSettings& settings);

// Returns the special tokens before and after a text in the post_processor of a tokenizer.json; ""
// for none.
std::pair<std::string, std::string> tokens_around(const Json& post_processor);

// Returns the maximum number of tokens of a text, from model_max_length. Error if it is below 1.
std::optional<int64_t> longest_text(const TokenizerSettings& settings);

// Reads the folder's tokenizer.json, or makes one from older files, and applies the settings.
// Errors as Tokenizer::load, older_tokenizer and settled_tokenizer.
ForeignTokenizer read_foreign_tokenizer(const std::string& folder,
                                        const TokenizerSettings& settings, const OlderNames& names);

// Makes a tokenizer.json from vocab.txt, from vocab.json and merges.txt, or from
// sentencepiece.bpe.model. Errors as tokenizer_json, and if none of them exists, and on unsupported
// settings.
std::string older_tokenizer(const std::string& folder, const TokenizerSettings& settings,
                            const OlderNames& names);

// Returns the row for the tokenizer_class of the folder. Error, naming the rows, if there is none.
const LanguageTokenizer& language_tokenizer(const TokenizerSettings& settings,
                                            const JsonPosition& config,
                                            const std::vector<LanguageTokenizer>& rows);
// Returns the language that a token marks, by the forms of a row; empty if it marks none.
std::string language_of(const std::string& token, const LanguageTokenizer& row);
// Returns src_lang, or the usual language. Error, naming the nearest, if the tokenizer lacks it.
std::string source_language(const TokenizerSettings& settings, const TextTokenizer& tokenizer);
// Adds the member languages_key to a tokenizer.json, and puts the source's language and the end
// around texts. Error if no special token marks a language, and on an unknown src_lang.
std::string with_languages(const std::string& bytes, const std::string& path,
                           const TokenizerSettings& settings);
// Returns the language of a token; empty if it marks none.
std::string language_of(const ForeignTokenizer& tokenizer, int64_t token);

// Reads sentencepiece.bpe.model and vocab.json of M2M100. Errors as read_side_tokenizers.
ForeignTokenizer read_language_pieces(const std::string& folder, const TokenizerSettings& settings);

// Returns a vocabulary in the order of the list, instead of its usual order. Error, naming the
// folder, on duplicate names.
Vocabulary in_order(const std::vector<std::string>& names, const std::string& folder);

// Reads source.spm, target.spm and vocab.json of Marian's translators, with added tokens. Errors as
// MarianTokenizer::parse and parse_vocabulary, if a file is missing, and if tokenizer_config.json
// names other special tokens or unsupported settings.
ForeignTokenizer read_side_tokenizers(const std::string& folder, const TokenizerSettings& settings);

}  // namespace attend::internal
