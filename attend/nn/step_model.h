#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/nn/multi_head_state.h"

namespace attend {

// What a model holds between two steps in a form of its own.
class HeldSteps {
 public:
  virtual ~HeldSteps() = default;
  // Does what StepState::reorder does.
  virtual void reorder(const at::Tensor& rows) = 0;
};

// The state of decoding between two steps. Axis 0 of every tensor is the hypothesis.
struct StepState {
  std::vector<at::Tensor> recurrent;        // replaced by each step
  std::vector<at::Tensor> constant;         // of the source, the same at every step
  std::vector<MultiHeadState> self_cache;   // keys and values of the answer so far, a layer each
  std::vector<MultiHeadState> cross_cache;  // keys and values of the source, a layer each
  std::vector<StepState> members;           // of several models that decode as one
  std::unique_ptr<HeldSteps> held = {};     // of a model that steps on it instead of the caches

  // Goes on with these rows, int64 [rows], in that order; one may be there more than once.
  // `same_sources`: each row stays with its source, so that only what differs between the
  // hypotheses of a source moves.
  void reorder(const at::Tensor& rows, bool same_sources);
};

struct StepResult {
  at::Tensor log_probabilities;  // [N, V]
  at::Tensor weights;            // [N, S] when asked for, and when the model attends
};

// What a search asks of a step.
struct NextQuery {
  int64_t count = 1;                   // the most probable tokens of each hypothesis, 1 or more
  std::vector<int64_t> excluded = {};  // tokens that are none of them
  std::vector<int64_t> given = {};  // [N]: the one token of a hypothesis, excluded or not, -1: the
                                    // most probable; empty: these for all
  bool with_weights = false;        // as of step()
};

// Tokens that may come next, for each of N hypotheses, and the log probability that the model gives
// to each: best first, -inf where there are no more, and behind a token that was given.
struct NextTokens {
  at::Tensor log_probabilities;  // [N, K] double on the CPU, K the count or all tokens
  at::Tensor tokens;             // [N, K] int64 on the CPU
  at::Tensor weights;            // as StepResult has them
};

// log_probabilities [N, V] with -inf for the tokens that a query excludes.
at::Tensor without_excluded(const at::Tensor& log_probabilities, const NextQuery& query);

// What a query finds in log_probabilities [N, V].
NextTokens next_of(const at::Tensor& log_probabilities, const NextQuery& query);

// Replaces what was found by the given token where there is one; `given` [N] is NextQuery's.
void put_given(const at::Tensor& log_probabilities, const std::vector<int64_t>& given,
               NextTokens& found);

// A model that predicts a sequence one token at a time.
class StepModel {
 public:
  virtual ~StepModel() = default;

  // tokens [N] int64: the token before, of each hypothesis. The state becomes that after the step.
  virtual StepResult step(const at::Tensor& tokens, StepState& state, bool with_weights) = 0;

  // A step of which only the tokens asked for are told: those next_of() finds in its result, unless
  // a model finds them faster.
  virtual NextTokens next(const at::Tensor& tokens, StepState& state, const NextQuery& query);
};

}  // namespace attend
