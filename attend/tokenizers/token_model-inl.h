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

// Makes tokens of a piece of a text.
class TokenModel {
 public:
  explicit TokenModel(TokenTable tokens) : tokens_(std::move(tokens)) {}
  virtual ~TokenModel() = default;
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;

  // Appends the ids of the piece, which is well-formed UTF-8. Threads may share a model. Returns
  // the length in bytes up to which a text that contains the piece gives it these ids: a unigram
  // model adds scores over the whole text and rounds each sum.
  virtual uint32_t append(std::string_view piece, std::vector<int32_t>& ids) const = 0;
  static constexpr uint32_t any_text = std::numeric_limits<uint32_t>::max();

  // The unknown token; none if the model never produces one.
  virtual std::optional<int32_t> unknown() const = 0;

  const TokenTable& tokens() const { return tokens_; }

 private:
  TokenTable tokens_;
};

using TokenModelPointer = std::shared_ptr<const TokenModel>;

// The tokens <0x00> to <0xFF>, which stand for the bytes of what is no token.
class ByteTokens {
 public:
  explicit ByteTokens(const TokenTable& tokens);
  // Appends the ids of the bytes; false, and nothing, where one of them has no token.
  bool append(std::string_view bytes, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> ids_;
};

// WordPiece (Schuster and Nakajima 2012), as BERT has it: the longest token that a word begins
// with, then of the rest the longest with `prefix` in front, and so on; `unknown` alone where that
// fails or the word has over `longest_word` characters.
struct WordPieceOptions {
  int32_t unknown = 0;
  std::string prefix = "##";
  size_t longest_word = 100;
};
TokenModelPointer word_piece_model(TokenTable tokens, WordPieceOptions options);

// Byte-pair encoding (Sennrich et al. 2016): characters, then each time the pair of neighbours
// whose merge is the earliest becomes one, the leftmost of several.
struct BytePairOptions {
  std::optional<int32_t> unknown = {};  // a character that is no token; without it, it is left out
  bool join_unknown = false;            // one for several in a row
  bool by_bytes = false;                // tokens <0x00> to <0xFF> instead of unknown ones
  bool whole_first = false;             // a piece that is a token is not taken apart
  std::string prefix = {};              // in front of each character but the first
  std::string suffix = {};              // behind the last
};

// Two tokens and what they become, by ids.
struct TokenMerge {
  int32_t left, right, joined;
};
// The merge of two tokens, of which the right one may have `prefix` in front, which what they
// become has not. Errors, without a place: one of the three is no token; the line is not two texts
// with a space between.
TokenMerge merge_of(const std::string& left, const std::string& right, const TokenTable& tokens,
                    const std::string& prefix);
TokenMerge merge_of(std::string_view line, const TokenTable& tokens, const std::string& prefix);

TokenModelPointer byte_pair_model(TokenTable tokens, const std::vector<TokenMerge>& merges,
                                  BytePairOptions options);

// SentencePiece's unigram model (Kudo 2018): the tokens of greatest summed score. Those whose score
// is not a number are not taken. A character that is no token has the score `unknown_score`;
// neighbours of this kind are one unknown token.
struct UnigramOptions {
  int32_t unknown = 0;
  double unknown_score = 0;
  bool by_bytes = false;          // tokens <0x00> to <0xFF> instead of unknown ones
  bool look_up_unknown = true;    // unknown neighbours may be a token together
  bool single_precision = false;  // sums are rounded to float32
};
// What an unknown character counts less than the least score.
constexpr double unknown_penalty = 10;
TokenModelPointer unigram_model(TokenTable tokens, std::vector<double> scores,
                                UnigramOptions options);

}  // namespace attend::internal
