#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/text_config.h"
#include "attend/text/bpe.h"
#include "attend/text/text_tokenizer.h"
#include "attend/text/units.h"
#include "attend/text/vocabulary.h"

namespace attend {

// Token between the texts of a pair, unless a tokenizer splits them. No text contains it.
constexpr const char* pair_separator = "\t";

// Converts the texts of one side to tokens and back.
struct TextCodec {
  Units units = Units::character;
  std::optional<BytePairEncoding> codes = {};  // splits the words of Units::space further
  NormalForm form = NormalForm::nfc;
  bool lowercase = false;
  bool tokenise = false;
  bool language_token = false;
  bool names_file = false;                      // a text is a name and has no tokens
  std::optional<TextTokenizer> tokenizer = {};  // replaces units
  int64_t fill_length = 0;                      // as TextConfig::fill_length
  PairTexts pairs = PairTexts::never;           // whether a text is two texts
  std::string prompt = {};                      // precedes the first text of a pair
  std::string label_separator = {};             // replaces units; empty: a text is not labels

  // Returns the text normalised, lower-cased and tokenised, in this order. Error on invalid UTF-8.
  std::string prepared(std::string_view text) const;
  // Returns the tokens of the prepared text. With language_token, the first word is an unchanged
  // token (Johnson et al. 2017), and the rest is split. Errors as prepared and split_labels;
  // also if that word does not have the form <..>.
  std::vector<std::string> split(std::string_view text) const;
  // As split(), with the place of the second text of a pair. The prompt precedes the first text of
  // a pair. Errors also as source_texts().
  SourceTokens split_source(std::string_view text) const;
  // Splits a text of several lines in the same way. A line break is a separate token, except if a
  // tokenizer splits the text as a whole.
  std::vector<std::string> split_lines(std::string_view text) const;
  // Calls f(tokens) for each line of a text, because the tokens of a whole text would take many
  // times its size. A tokenizer reads the whole text, because the tokens of a line depend on the
  // next line.
  template <class F>
  void for_each_line(std::string_view text, F f) const {
    if (tokenizer) return f(split(text));
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      f(split_lines(text.substr(begin, end - begin)));
      begin = end;
    }
  }
  // Returns the text of tokens. It equals the text that was split, except for letter case, normal
  // form and, for split words, white space other than line breaks.
  std::string join(const std::vector<std::string>& tokens) const;
  // Returns the codec for texts in a language; unchanged if `language` is empty. Error as
  // TextTokenizer::in_language(), and if no tokenizer splits the texts.
  TextCodec in_language(const std::string& language) const;
  // Returns the codec for pairs after this prompt, instead of its own. Error if the prompt is not
  // UTF-8, and if texts are not pairs.
  TextCodec with_prompt(const std::string& other) const;
  // Returns the tokens that exist independently of the texts: all bytes if these are the units,
  // otherwise none.
  std::vector<std::string> alphabet() const;
  // Numbers of tokens that are put around the texts of a source, such as [CLS] and [SEP].
  TextMargins margins(bool is_pair) const;
  // Returns whether a text that is too long loses its beginning.
  bool cuts_left() const { return tokenizer && tokenizer->cuts_left(); }

  // Returns the part of a text for each token of split(); empty if the codec has no tokenizer.
  // Tokens of the prompt have no part.
  std::vector<TokenSpan> places(std::string_view text) const;
  // Returns a readable text per token: if token names spell bytes, the characters of these bytes.
  std::vector<std::string> texts(const std::vector<std::string>& tokens) const;

  // Returns the external id of a token: the id of the tokenizer, of a vocab.json next to a .spm,
  // or, without a tokenizer, of the vocabulary.
  int64_t outer_id(const std::string& token, const Vocabulary& vocabulary) const;
  // Returns the token with that external id. Error, with the range of ids, if there is none.
  std::string token_of(int64_t outer_id, const Vocabulary& vocabulary) const;
  // Returns whether a token is known to a model with the vocabulary. A mask has a name by its id in
  // the vocabulary, which no text can spell.
  bool knows(const std::string& token, const Vocabulary& vocabulary) const;

 private:
  std::string join_line(const std::vector<std::string>& tokens) const;
  std::vector<std::string> split_one(std::string_view text) const;
  std::vector<std::string> split_text(std::string_view text) const;
  std::vector<std::string> split_rest(std::string_view text) const;
};

// Returns whether a token has the form of a language token: <2de>.
bool is_language_token(std::string_view token);

struct TextCodecs {
  TextCodec source;
  TextCodec target;
};

// Reads the byte-pair codes and the tokenizer of the configuration. If the units of a side keep
// letters, as a tokenizer does, the side is neither lower-cased nor tokenised. Error if codes or a
// tokenizer are missing, unused by both sides or unreadable.
TextCodecs make_codecs(const TextConfig& text);

// with_codes_in returns the configuration with the paths of its codes in a model folder: bpe.codes,
// or source.bpe and target.bpe; tokenizer.json or source.spm; target_tokenizer.json or target.spm.
// save_codes writes these files.
TextConfig with_codes_in(const std::string& folder, TextConfig text);
void save_codes(const TextCodecs& codecs, const TextConfig& text, const std::string& folder);

// Adds the tokens of a text file, packed or not, to `counts`, line by line. Errors name file and
// line.
void count_tokens(const std::string& path, const TextCodec& codec, WordCounts& counts);

}  // namespace attend
