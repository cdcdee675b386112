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

// Answer that is explained: one source and one target. The network is forced to give the target's
// tokens. `source` and `target` are texts to show, as Model::source_texts().
struct Subject {
  const PairModel& model;
  Batch batch;                      // only this pair
  std::vector<std::string> source;  // tokens; for an image or a sound, their positions from 1
  std::vector<std::string> target;  // without the EOS that batch.target may end in
  std::string source_text = {};     // as given, or joined from tokens; empty for images and sounds
  std::string target_text = {};
  bool truncated = false;          // the source was longer than the model reads
  bool is_part = false;            // the answer was cut to what one pass reads
  bool converted_to_grey = false;  // a colour image was converted to grey
  bool complete = true;            // false: the answer was cut at the maximum length
  // Token that each token of batch.target is compared with, int64 [T]: why that one and not this?
  // (Jacovi et al. 2021; Yin & Neubig 2022). Undefined: no comparison. Positions with equal tokens
  // are not compared.
  at::Tensor against = {};
  std::string against_text = {};  // the compared tokens as given
  // Language of the answer and of a compared one; empty: the model's default.
  std::string target_language = {};

  PairNetwork& network() const { return *model.network; }
  int64_t source_length() const { return batch.source.size(1); }
  int64_t target_length() const { return batch.target.size(1); }  // EOS included
  // Index of the first token of the second text; source_length() if the source is not a pair.
  int64_t second_text() const;
};

// Returns the name of an answer token: in the vocabulary or, if it is a position, in the source.
std::string target_name(const Subject& subject, int64_t id);

// Makes the subject of a pair of the model. Error if it has no source or no target.
Subject make_subject(const PairModel& model, const EncodedPair& encoded);

// Returns the model's best answer to a source, or `target` in its place (forced decoding). Errors
// as Model, and if the model cannot be forced to give the target: a label that was not in training,
// a token that its vocabulary lacks, or any target of a model that fills in hidden tokens or
// answers with numbers. An answer that continues its source is cut to what fits into the context
// with it. The target is read in the target language of the search.
Subject answered_subject(const Model& model, const std::string& source, const SearchOptions& search,
                         const std::string& target = "");

// Returns the subject of a text without an answer; batch.target is a placeholder. Errors begin
// with `name`, such as "the first text": if the text is empty or not UTF-8, and if sources
// are not texts.
Subject text_subject(const PairModel& model, const std::string& text, const std::string& name);

// Compares the subject's answer with another one: a single token, used at each position, or one
// token per token of the answer. Empty: no comparison. Error on a token that the model lacks, on
// another number of tokens, on the answer itself, and if answers are numbers.
Subject compared_with(Subject subject, const std::string& other);

// Returns the quantity that methods explain, from log probabilities [B, T, V], or [B, V] at
// position t: the log probabilities of the target's tokens, [B, T] or [B]. With a comparison,
// returns their difference to the log probabilities of the other tokens.
at::Tensor preferences(const Subject& subject, const at::Tensor& distributions);
at::Tensor preferences_at(const Subject& subject, int64_t t, const at::Tensor& distributions);

// Returns log probabilities [B, T, V], or [B, V] at positions [B], for evidence. With a comparison,
// the two compared tokens share all of the probability.
at::Tensor considered(const Subject& subject, const at::Tensor& distributions);
at::Tensor considered_at(const Subject& subject, const at::Tensor& places,
                         const at::Tensor& distributions);

// Returns at most `maximum` whole numbers below `count`, evenly spaced from 0.
std::vector<int64_t> evenly_spaced(int64_t count, int64_t maximum);

// Returns at most `maximum` positions of the answer, evenly spaced. With a comparison, the two
// answers have different tokens at each of these positions.
std::vector<int64_t> asked_places(const Subject& subject, int64_t maximum);

// Number of tokens at both ends of the source that its tokenizer puts around every text, such as
// [CLS] and [SEP]. They are not part of the text and are never left out.
struct TokensAround {
  int64_t before = 0, after = 0;
};
TokensAround special_tokens(const Subject& subject);

// Bool [source length]: false for special_tokens() and for special tokens between the texts of a
// pair.
at::Tensor text_tokens(const Subject& subject);

// Returns the source [1, S] with unknown_token() at `places`, bool [S].
at::Tensor with_unknown(const Subject& subject, const at::Tensor& places);

// Returns the source token of an unknown word: the tokenizer's if it has one, else
// Vocabulary::unknown.
int64_t unknown_token(const PairModel& model);

// Returns the subject's source with only some of its tokens, one row per set. Each set in `kept` is
// in order and in [0, source length). Other tokens are left out. In an image, in a graph and in a
// model with an answer per token, they are blanked instead: by zeros, by unknown_token() or, in a
// model that fills in hidden tokens, by a hidden one. An empty source becomes an unknown token, or
// a frame of zeros.
Batch with_tokens(const Subject& subject, const std::vector<std::vector<int64_t>>& kept);

// Returns, for each token in `left_out`, the set of all other tokens of the source.
std::vector<std::vector<int64_t>> leave_one_out(const Subject& subject, const at::Tensor& left_out);

// Answers of the network when it reads only the kept tokens.
struct KeptAnswers {
  at::Tensor preferences;    // [sets, T]
  at::Tensor probabilities;  // [sets, T] of the target's tokens, as considered()
  at::Tensor answers;        // int64 [sets, T]: most probable token, as considered()
};
KeptAnswers answers_of(const Subject& subject, const std::vector<std::vector<int64_t>>& kept);

// Number of copies of the source, complete or partial, per pass.
int64_t rows_at_once(const Subject& subject);

// Repeats the batch of one pair `rows` times.
Batch repeated(const Batch& one, int64_t rows);

}  // namespace attend
