#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "attend/explain/evidence.h"

namespace attend {

// Data about one answer that all figures share, whatever the map. Each part is computed on first
// use.
class AnswerEvidence {
 public:
  AnswerEvidence(const Explanation& explanation, const WeightTestOptions& options);

  // Source tokens that the figures of a map consider: method_scope() of the rows, without
  // special_tokens().
  at::Tensor scope(const MethodRow& method, const MethodChoice& choice);

  // Mean probability lost over the tokens of the answer: `without` when the best source tokens in
  // scope are removed, `with` when only these are kept. Tokens out of scope are never removed.
  // Empty if no row has two tokens in scope.
  struct Erased {
    double without = 0, with = 0;
  };
  std::optional<Erased> erase(const at::Tensor& scores, const at::Tensor& scope);
  // Mean over all orders of the tokens in scope. Exact if there are at most
  // WeightTestOptions::orders sets per size, else estimated from that many drawn orders.
  std::optional<Erased> erase_in_random_order(const at::Tensor& scope);

  // Share of the answer's tokens that change without the source token of the largest score. The
  // baseline is the mean share over the other tokens in scope. Rows with fewer than two keys in
  // scope are skipped.
  FigureValue flips_by_token(const at::Tensor& scores, const at::Tensor& scope);

  // Tests of the weights that the answer is read from; null if it is read from none.
  const WeightTests* weight_tests();

  // Mean Kendall's tau between the map and each of `others`. Only answer tokens with at least four
  // keys in scope count, and only these keys are ranked.
  FigureValue tau(const MappedScores& map, const std::vector<at::Tensor>& others) const;
  // Like tau(), for amounts that may be negative; uses their magnitudes if the map has no signs.
  FigureValue tau_with_amounts(const MappedScores& map, const at::Tensor& amounts) const;
  const at::Tensor& gradient();   // [T, S]: held_amounts()
  const at::Tensor& occlusion();  // [T, S]: probability lost without each token
  // Scores of the method for untrained networks of this kind.
  std::vector<at::Tensor> untrained_scores(const MethodRow& method, const MethodChoice& choice);

  const std::vector<int64_t>& rows() const { return rows_; }  // tested rows of the answer

 private:
  // Source tokens that remain, in order. `without`: all except the chosen tokens. `with`: the
  // chosen tokens and the tokens out of scope.
  struct Erasure {
    std::vector<int64_t> without, with;
  };
  // Erasures of one size for one token of the answer; their mean counts once.
  struct RowErasures {
    int64_t row;
    std::vector<Erasure> sets;
  };

  const NetworkTrace& trace() const { return explanation_.trace(); }
  void read_without_each();
  void read_kept(const std::set<std::vector<int64_t>>& sets);
  Erasure erasure(const at::Tensor& removed, const at::Tensor& row_scope) const;
  std::optional<Erased> mean_of(const std::vector<RowErasures>& all);

  const Explanation& explanation_;
  const Subject& subject_;
  WeightTestOptions options_;
  std::vector<int64_t> rows_;
  at::Tensor plain_;     // [T]: probabilities
  at::Tensor answered_;  // [T]: the most probable tokens
  bool has_weights_;
  at::Tensor gradient_, occlusion_;
  at::Tensor changed_;  // [T, S]: whether the token changes without each source token
  std::optional<WeightTests> weights_;
  // Probabilities [T] of the answer when the network reads only these tokens. Cached because maps
  // often agree on the tokens.
  std::map<std::vector<int64_t>, at::Tensor> kept_;
  at::Tensor erased_scores_;  // argument of the last call of erase(), and its result
  std::optional<Erased> erased_;
  at::Tensor random_scope_;  // argument of the last call of erase_in_random_order(), and its result
  std::optional<Erased> random_;
  at::Tensor reached_;  // scope of methods without MethodRow::scope

  // Untrained model, and the trace of the answer through it.
  struct Untrained {
    std::unique_ptr<PairModel> model;
    NetworkTrace trace;
  };
  Subject untrained_subject(const Untrained& one) const;
  std::vector<Untrained> untrained_;
};

}  // namespace attend
