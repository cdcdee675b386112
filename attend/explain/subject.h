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
  bool truncated = false;           // the source was longer than the model reads

  PairNetwork& network() const { return *model.network; }
  int64_t source_length() const { return batch.source.size(1); }
  int64_t target_length() const { return batch.target.size(1); }  // EOS included
};

// The subject of `encoded`, a pair of the model. Error where it has no source or no target.
Subject make_subject(const PairModel& model, const EncodedPair& encoded);

// The model's best answer to a source, or with `target` that answer in its place (forced decoding).
// Error as Model, and where the model cannot be made to give the target: a label that was not in
// training, a token that its vocabulary lacks, or any target of a model that fills in what is
// hidden.
Subject answered_subject(const Model& model, const std::string& source, const SearchOptions& search,
                         const std::string& target = "", const AnswerWatch& watch = {});

// The subject's source with some of its tokens alone, `kept` in order and of [0, source length),
// one row per set. Other tokens are left out; in an image, and where the network fills in what is
// hidden, their places are blanked. An empty source becomes an unknown token, or a frame of zeros.
Batch with_tokens(const Subject& subject, const std::vector<std::vector<int64_t>>& kept);

// Sets of all tokens of the source but one: the first leaves the first token out, and so on.
std::vector<std::vector<int64_t>> leave_one_out(const Subject& subject);

// Answers of the network when it reads those tokens alone.
struct KeptAnswers {
  at::Tensor log_probabilities;  // [sets, T] of the target's tokens
  at::Tensor answers;            // int64 [sets, T]: the most probable token at each place
};
KeptAnswers answers_of(const Subject& subject, const std::vector<std::vector<int64_t>>& kept);

// The batch of one pair with so many rows of it.
Batch repeated(const Batch& one, int64_t rows);

}  // namespace attend
