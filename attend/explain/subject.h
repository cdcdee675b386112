#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/decode/search_options.h"
#include "attend/explain/trace.h"
#include "attend/inference/model.h"
#include "attend/models/pair_model.h"

namespace attend {

// An answer that is explained: one source and one target, whose tokens the network is made to
// give.
struct Subject {
  const PairModel& model;
  Batch batch;                      // of this pair alone
  std::vector<std::string> source;  // tokens; of an image or a sound their places, from 1
  std::vector<std::string> target;  // without EOS, which batch.target may end in
                                    // Both are texts to show, as Model::source_texts().
  std::string source_text = {};     // asked, or of the tokens; empty for images and sounds
  std::string target_text = {};
  bool truncated = false;  // the source was longer than the model reads
  bool is_part = false;    // the answer continues behind what one pass reads
  bool greyed = false;     // an image in colour was read in grey
  bool complete = true;    // false: the answer was cut at the longest length
  // The token that each of batch.target is compared with, int64 [T]: why that one and not this?
  // (Jacovi et al. 2021; Yin & Neubig 2022). Undefined: with none. Where both are one, nothing is
  // asked.
  at::Tensor against = {};
  std::string against_text = {};  // those tokens, as they were given

  PairNetwork& network() const { return *model.network; }
  int64_t source_length() const { return batch.source.size(1); }
  int64_t target_length() const { return batch.target.size(1); }  // EOS included
};

// The subject of `encoded`, a pair of the model. Error where it has no source or no target.
Subject make_subject(const PairModel& model, const EncodedPair& encoded);

// The model's best answer to a source, or with `target` that answer in its place (forced decoding).
// Error as Model, and where the model cannot be made to give the target: a label that was not in
// training, a token that its vocabulary lacks, or any target of a model that fills in what is
// hidden. Of an answer that continues its source, as much as fits into the context beside that.
Subject answered_subject(const Model& model, const std::string& source, const SearchOptions& search,
                         const std::string& target = "", const AnswerWatch& watch = {});

// The subject with another answer that its own is compared with: one token, for each place of the
// answer, or as many as the answer has; empty: with none. Error on a token that the model does not
// know, on another number of tokens, on the answer itself, and where answers are numbers.
Subject compared_with(Subject subject, const std::string& other);

// What methods explain of log probabilities [B, T, V], or of [B, V] at place t: those of the
// target's tokens, [B, T] or [B]; where they are compared, the difference to those of the others.
at::Tensor preferences(const Subject& subject, const at::Tensor& distributions);
at::Tensor preferences_at(const Subject& subject, int64_t t, const at::Tensor& distributions);

// Log probabilities [B, T, V], or [B, V] at places [B], as evidence looks at them: where tokens
// are compared, the two that are share all of the probability.
at::Tensor considered(const Subject& subject, const at::Tensor& distributions);
at::Tensor considered_at(const Subject& subject, const at::Tensor& places,
                         const at::Tensor& distributions);

// At most so many whole numbers below `count`, evenly spaced from 0 on.
std::vector<int64_t> evenly_spaced(int64_t count, int64_t most);

// At most so many places of the answer, evenly spaced, of those where something is asked.
std::vector<int64_t> asked_places(const Subject& subject, int64_t most);

// Number of tokens at both ends of the source that its tokenizer puts around every text, such as
// [CLS] and [SEP]. They are no part of the text: what leaves tokens out keeps them.
struct TokensAround {
  int64_t before = 0, after = 0;
};
TokensAround special_tokens(const Subject& subject);

// Bool [source length]: false for special_tokens().
at::Tensor text_tokens(const Subject& subject);

// The id of the source token that stands for an unknown word: that of the tokenizer if it has one,
// else Vocabulary::unknown.
int64_t unknown_token(const PairModel& model);

// The subject's source with some of its tokens, `kept` in order and of [0, source length), one row
// per set. Other tokens are left out. In an image, in a graph and in a model with an answer per
// token their places are blanked instead: zeros, unknown_token() or, in a model that fills in
// hidden tokens, a hidden one. An empty source becomes an unknown token, or a frame of zeros.
Batch with_tokens(const Subject& subject, const std::vector<std::vector<int64_t>>& kept);

// Sets of all tokens of the source but one, for each of `left_out`.
std::vector<std::vector<int64_t>> leave_one_out(const Subject& subject, const at::Tensor& left_out);

// Answers of the network when it reads those tokens alone.
struct KeptAnswers {
  at::Tensor preferences;    // [sets, T]
  at::Tensor probabilities;  // [sets, T] of the target's tokens, as considered() has them
  at::Tensor
      answers;  // int64 [sets, T]: the most probable token at each place, of those considered
};
KeptAnswers answers_of(const Subject& subject, const std::vector<std::vector<int64_t>>& kept);

// How many copies of the source, of all or some of its tokens, are computed at once.
int64_t rows_at_once(const Subject& subject);

// The batch of one pair with so many rows of it.
Batch repeated(const Batch& one, int64_t rows);

}  // namespace attend
