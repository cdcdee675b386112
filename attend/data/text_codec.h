#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/bpe.h"
#include "attend/data/pairs.h"
#include "attend/data/text_config.h"
#include "attend/data/text_tokenizer.h"
#include "attend/data/units.h"
#include "attend/data/vocabulary.h"

namespace attend {

// How the texts of one side become tokens, and tokens a text again.
struct TextCodec {
  Units units = Units::character;
  std::optional<BytePairEncoding> codes = {};  // splits the words of Units::space further
  NormalForm form = NormalForm::nfc;
  bool lowercase = false;
  bool tokenise = false;
  bool language_token = false;
  bool names_file = false;                      // a text is a name and has no tokens
  std::optional<TextTokenizer> tokenizer = {};  // splits texts in place of units

  // Normalised, lower-cased and tokenised, in this order. Error on invalid UTF-8.
  std::string prepared(std::string_view text) const;
  // Prepared and split. With language_token the first word is a token, unchanged (Johnson et al.
  // 2017), and the rest is split. Errors as prepared, and where that word is not written as <..>.
  std::vector<std::string> split(std::string_view text) const;
  // Splits a text of several lines in the same way; a line break becomes a token of its own, but
  // where a tokenizer splits the text as a whole.
  std::vector<std::string> split_lines(std::string_view text) const;
  // Calls f(tokens) for each line of a text: the tokens of all of it at once would take many times
  // its size. A tokenizer reads the whole text, because the tokens of
  // a line depend on the line behind it.
  template <class F>
  void for_each_line(std::string_view text, F f) const {
    if (tokenizer) return f(split(text));
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      f(split_lines(text.substr(begin, end - begin)));
      begin = end;
    }
  }
  // The text that was split, except for letter case, the normal form, which is this codec's, and,
  // where words are split, white space other than line breaks.
  std::string join(const std::vector<std::string>& tokens) const;
  // The tokens that exist whatever the texts hold: all bytes where these are the units, else none.
  std::vector<std::string> alphabet() const;
  // The number of tokens that a tokenizer puts before each text, such as [CLS], and after it.
  int64_t opening_tokens() const { return tokenizer ? tokenizer->opening_tokens() : 0; }
  int64_t closing_tokens() const { return tokenizer ? tokenizer->closing_tokens() : 0; }
  // Whether a text that is too long loses its beginning.
  bool cuts_left() const { return tokenizer && tokenizer->cuts_left(); }

  // The part of a text that each token of split() stands for; empty if the codec has no tokenizer.
  std::vector<TokenPlace> places(std::string_view text) const;
  // A readable text of each token: the characters that it stands for, if its name spells bytes.
  std::vector<std::string> texts(const std::vector<std::string>& tokens) const;

  // The id of a token outside of the program: the id of the tokenizer, of a vocab.json beside a
  // .spm, or, without a tokenizer, of the vocabulary.
  int64_t outer_id(const std::string& token, const Vocabulary& vocabulary) const;
  // The token with that outer id. Error, with the range of ids, on an id that no token has.
  std::string token_of(int64_t outer_id, const Vocabulary& vocabulary) const;
  // Whether a model with the vocabulary knows a token. A vocabulary calls a mask by its id, so that
  // no text makes it.
  bool knows(const std::string& token, const Vocabulary& vocabulary) const;

 private:
  std::string join_line(const std::vector<std::string>& tokens) const;
  std::vector<std::string> split_rest(std::string_view text) const;
};

// Whether a token is written as one that names a language: <2de>.
bool is_language_token(std::string_view token);

struct TextCodecs {
  TextCodec source;
  TextCodec target;
};

// Reads the byte-pair codes and the tokenizer that the configuration names. A side of units that
// keep their letters, as a tokenizer does, is neither lower-cased nor tokenised. Error on codes and
// on a tokenizer that are missing, that no side uses or that cannot be read.
TextCodecs make_codecs(const TextConfig& text);

// The configuration with its codes at their places in a model folder: bpe.codes, or source.bpe and
// target.bpe, tokenizer.json or source.spm, target_tokenizer.json or target.spm. save_codes writes
// them there.
TextConfig with_codes_in(const std::string& folder, TextConfig text);
void save_codes(const TextCodecs& codecs, const TextConfig& text, const std::string& folder);

// Adds up the tokens of a text file, packed or not, line by line. Errors name file and line.
void count_tokens(const std::string& path, const TextCodec& codec, WordCounts& counts);

}  // namespace attend
