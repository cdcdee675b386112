#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/nn/pass.h"

namespace attend {

struct StepResult {
  at::Tensor log_probabilities;  // [N, V]; [N, 1] of an answer that is a number: that number
  at::Tensor weights;            // [N, S] if wanted, and if the network attends
};

// What a search asks of a step.
struct NextQuery {
  int64_t count = 1;                   // the most probable tokens of each hypothesis, 1 or more
  std::vector<int64_t> excluded = {};  // tokens that are none of them
  std::vector<int64_t> given = {};  // [N]: the one token of a hypothesis, excluded or not, -1: the
                                    // most probable; empty: these for all
  bool with_weights = false;        // as step() tells them
};

// Tokens that may come next, for each of N hypotheses, and the log probability that the model gives
// to each: best first, -inf where there are no more, and behind a token that the query fixed.
struct NextTokens {
  at::Tensor log_probabilities;  // [N, K] double on the CPU, K the count or all tokens
  at::Tensor tokens;             // [N, K] int64 on the CPU
  at::Tensor weights;            // as StepResult has them
};

// log_probabilities [N, V] with -inf for the tokens that a query excludes.
at::Tensor without_excluded(const at::Tensor& log_probabilities, const NextQuery& query);

// What a query finds in the result of a step.
NextTokens next_of(const StepResult& result, const NextQuery& query);

// Replaces the result by the fixed token where there is one; `given` [N] is NextQuery's.
void put_given(const at::Tensor& log_probabilities, const std::vector<int64_t>& given,
               NextTokens& found);

// What a network carries from one step of decoding to the next, for N hypotheses, and how it takes
// the step. Each network has its own; the network must outlive it.
class DecodingState {
 public:
  virtual ~DecodingState() = default;

  // Reads tokens [N] int64, the last of each hypothesis, and becomes the state behind them.
  virtual StepResult step(const at::Tensor& tokens, bool with_weights, const Pass& pass) = 0;

  // A step that nobody watches and that returns only what the query wants: next_of() of its result,
  // unless a network computes that faster.
  virtual NextTokens next(const at::Tensor& tokens, const NextQuery& query);

  // Continues with these rows, int64 [rows], in that order; a row may be named more than once.
  // `same_sources`: each row keeps its source, so that only what differs between the hypotheses of
  // a source moves.
  virtual void reorder(const at::Tensor& rows, bool same_sources) = 0;

  // Whether append() takes hypotheses that stand at other positions.
  virtual bool appends() const { return false; }

  // Goes on with the hypotheses of `other` behind its own, to the last bit as each would alone. The
  // other is a state of the same network that was started in the same way, and holds nothing
  // afterwards. Steps tell no weights from then on.
  virtual void append(DecodingState& other);

  // A copy with the hypotheses of `others`, states of the same network, behind its own, for a step
  // whose weights over the source come from a watch: it forgets how to compute them. Null where a
  // network has no copies, or hypotheses that have read more tokens hold more.
  virtual std::unique_ptr<DecodingState> joined(const std::vector<DecodingState*>& others) const;
};

}  // namespace attend
