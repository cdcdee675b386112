#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/tokenizers/token_table-inl.h"

namespace attend::internal {

// Splits a piece of a text into tokens.
class TokenModel {
 public:
  explicit TokenModel(TokenTable tokens) : tokens_(std::move(tokens)) {}
  virtual ~TokenModel() = default;
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;

  // Appends the ids of the piece, which is well-formed UTF-8. Threads may share a model. Returns
  // the maximum length in bytes of a text in which the piece is certain to get the same ids: a
  // unigram model adds scores over the whole text and rounds each sum.
  virtual uint32_t append(std::string_view piece, std::vector<int32_t>& ids) const = 0;
  static constexpr uint32_t any_text = std::numeric_limits<uint32_t>::max();

  // Returns the unknown token; none if the model never produces one.
  virtual std::optional<int32_t> unknown() const = 0;

  const TokenTable& tokens() const { return tokens_; }

 private:
  TokenTable tokens_;
};

using TokenModelPointer = std::shared_ptr<const TokenModel>;

// The tokens <0x00> to <0xFF>, which represent the bytes of unknown text.
class ByteTokens {
 public:
  explicit ByteTokens(const TokenTable& tokens);
  // Appends the ids of the bytes. Returns false and appends nothing if a byte has no token.
  bool append(std::string_view bytes, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> ids_;
};

// WordPiece (Schuster and Nakajima 2012) as in BERT. Takes the longest token at the start of a
// word, then repeatedly the longest token `prefix` + start of the rest. The result is a single
// `unknown` if that fails or the word has over `longest_word` characters.
struct WordPieceOptions {
  int32_t unknown = 0;
  std::string prefix = "##";
  size_t longest_word = 100;
};
TokenModelPointer word_piece_model(TokenTable tokens, WordPieceOptions options);

// Byte-pair encoding (Sennrich et al. 2016). Starts from characters and repeatedly joins the pair
// of neighbours with the earliest merge; among equal pairs the leftmost.
struct BytePairOptions {
  std::optional<int32_t> unknown = {};  // for unknown characters; if unset, they are omitted
  bool join_unknown = false;            // one unknown token for a run
  bool by_bytes = false;                // tokens <0x00> to <0xFF> instead of unknown ones
  bool whole_first = false;             // a piece that is a token is not split
  std::string prefix = {};              // before each character except the first
  std::string suffix = {};              // after the last character
};

// Ids of two tokens and of the token that joins them.
struct TokenMerge {
  int32_t left, right, joined;
};
// Returns the merge of two tokens. If the right one begins with `prefix`, the joined token omits
// it. The second form takes a line of two tokens with a space between. Errors, without a place: one
// of the three is not a token; the line has another form.
TokenMerge merge_of(const std::string& left, const std::string& right, const TokenTable& tokens,
                    const std::string& prefix);
TokenMerge merge_of(std::string_view line, const TokenTable& tokens, const std::string& prefix);

TokenModelPointer byte_pair_model(TokenTable tokens, const std::vector<TokenMerge>& merges,
                                  BytePairOptions options);

// SentencePiece's unigram model (Kudo 2018): the tokens with the highest sum of scores. Tokens with
// a NaN score are not used. A character that is not a token has the score `unknown_score`; a run of
// such characters is one unknown token.
struct UnigramOptions {
  int32_t unknown = 0;
  double unknown_score = 0;
  bool by_bytes = false;          // tokens <0x00> to <0xFF> instead of unknown ones
  bool look_up_unknown = true;    // a run of unknown characters may be a token
  bool single_precision = false;  // sums are rounded to float32
};
// Difference between the lowest score and the score of an unknown character.
constexpr double unknown_penalty = 10;
TokenModelPointer unigram_model(TokenTable tokens, std::vector<double> scores,
                                UnigramOptions options);

}  // namespace attend::internal
