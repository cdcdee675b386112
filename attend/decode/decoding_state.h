#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/nn/pass.h"

namespace attend {

struct StepResult {
  at::Tensor log_probabilities;  // [N, V]; for a numeric answer [N, 1]: the number
  at::Tensor weights;            // [N, S], if requested and if the network attends
};

// Request of a search for the next tokens.
struct NextQuery {
  int64_t count = 1;                   // number of most probable tokens per hypothesis, 1 or more
  std::vector<int64_t> excluded = {};  // tokens that must not be returned
  std::vector<int64_t> given = {};     // [N]: fixed token per hypothesis, even if excluded; -1: the
                                       // most probable tokens; empty: -1 for all
  bool with_weights = false;           // returns weights as step() does
};

// Candidates for the next token of each of N hypotheses, with the log probabilities of the model.
// Best first; -inf after the last candidate and after a fixed token.
struct NextTokens {
  at::Tensor log_probabilities;  // [N, K] double on the CPU; K: count, or all tokens if fewer
  at::Tensor tokens;             // [N, K] int64 on the CPU
  at::Tensor weights;            // as in StepResult
};

// Returns log_probabilities [N, V] with -inf for the excluded tokens of the query.
at::Tensor without_excluded(const at::Tensor& log_probabilities, const NextQuery& query);

// Selects the tokens of a query from the result of a step.
NextTokens next_of(const StepResult& result, const NextQuery& query);

// Replaces the result by the fixed token if there is one; `given` [N] as in NextQuery.
void put_given(const at::Tensor& log_probabilities, const std::vector<int64_t>& given,
               NextTokens& found);

// State of a network between steps of decoding, for N hypotheses, and the step itself. Each network
// has its own class. The network must outlive the state.
class DecodingState {
 public:
  virtual ~DecodingState() = default;

  // Reads tokens [N] int64, the last of each hypothesis, and advances the state.
  virtual StepResult step(const at::Tensor& tokens, bool with_weights, const Pass& pass) = 0;

  // An unwatched step that returns only the tokens of the query. Equals next_of() of the result of
  // step(); networks may compute it faster.
  virtual NextTokens next(const at::Tensor& tokens, const NextQuery& query);

  // Continues with these rows, int64 [rows], in this order; a row may be repeated. `same_sources`:
  // each row keeps its source; only data that differs between hypotheses of one source is moved.
  virtual void reorder(const at::Tensor& rows, bool same_sources) = 0;

  // Whether append() accepts hypotheses at other positions.
  virtual bool appends() const { return false; }

  // Appends the hypotheses of `other`. Results are bit-identical to separate decoding. `other` must
  // be a state of the same network that was started in the same way; it is empty afterwards. Later
  // steps return no weights.
  virtual void append(DecodingState& other);

  // Returns a copy with the hypotheses of `others`, states of the same network, appended. The
  // copy cannot compute source weights: a watch must set them in its steps. Null if states cannot
  // be copied or their size depends on the position.
  virtual std::unique_ptr<DecodingState> joined(const std::vector<DecodingState*>& others) const;
};

}  // namespace attend
