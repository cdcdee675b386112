#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "attend/explain/evidence.h"

namespace attend {

// What figures need to know of an answer, whatever the map; computed at its first use.
class AnswerEvidence {
 public:
  AnswerEvidence(const Subject& subject, const WeightTestOptions& options);

  // The tokens of the source that figures of a map look at: method_scope() of the rows, without
  // special_tokens().
  at::Tensor scope(const MethodRow& method, const MethodChoice& choice);

  // Means over the tokens of the answer of the probability lost without the best tokens of a
  // source in scope, and without the others there; none if no row has two tokens in scope. Tokens
  // out of scope stay as they are.
  struct Erased {
    double without = 0, with = 0;
  };
  std::optional<Erased> erase(const at::Tensor& scores, const at::Tensor& scope);
  // The mean over all orders of the tokens in scope: exact if the sets of tokens of a size are at
  // most WeightTestOptions::orders, else of so many drawn orders.
  std::optional<Erased> erase_in_random_order(const at::Tensor& scope);

  // The share of the answer's tokens that change without their source token of the largest score,
  // and without another, the mean over all of them, in scope. Tokens with one key there say
  // nothing.
  FigureValue flips_by_token(const at::Tensor& scores, const at::Tensor& scope);

  // The weights that the answer is read off; null where there are none.
  const WeightTests* weight_tests();

  // Mean Kendall's tau of the map with each of the others, over those tokens of the answer for
  // which the method scores at least four tokens of the source, and over these alone.
  FigureValue tau(const MappedScores& map, const std::vector<at::Tensor>& others) const;
  // The same with amounts that may be below 0, or their magnitudes if the map has no signs.
  FigureValue tau_with_amounts(const MappedScores& map, const at::Tensor& amounts) const;
  const at::Tensor& gradient();   // [T, S]: held_amounts()
  const at::Tensor& occlusion();  // [T, S]: the probability lost without each token
  // What the method says of untrained networks of this kind.
  std::vector<at::Tensor> untrained_scores(const MethodRow& method, const MethodChoice& choice);

  const NetworkTrace& trace() const { return trace_; }
  const std::vector<int64_t>& rows() const { return rows_; }  // of the answer, that are looked at

 private:
  // Tokens of a source that are erased together, and those that are kept then, in order.
  struct Erasure {
    std::vector<int64_t> without, with;
  };
  // Erasures of one size for a token of the answer, which count as one: their mean.
  struct RowErasures {
    int64_t row;
    std::vector<Erasure> sets;
  };

  void read_without_each();
  void read_kept(const std::set<std::vector<int64_t>>& sets);
  Erasure erasure(const at::Tensor& removed, const at::Tensor& row_scope) const;
  std::optional<Erased> mean_of(const std::vector<RowErasures>& all);

  const Subject& subject_;
  WeightTestOptions options_;
  NetworkTrace trace_;
  std::vector<int64_t> rows_;
  at::Tensor plain_;     // [T]: probabilities
  at::Tensor answered_;  // [T]: the most probable tokens
  bool has_weights_;
  at::Tensor gradient_, occlusion_;
  at::Tensor changed_;  // [T, S]: whether the token changes without each other
  std::optional<WeightTests> weights_;
  // The answer's probabilities [T] when the network reads only these tokens. Maps often agree on
  // the tokens.
  std::map<std::vector<int64_t>, at::Tensor> kept_;
  at::Tensor erased_scores_;  // of the last call of erase(), and its result
  std::optional<Erased> erased_;
  at::Tensor random_scope_;  // of the last call of erase_in_random_order(), and its result
  std::optional<Erased> random_;
  at::Tensor reached_;  // the scope of methods that have none of their own

  // An untrained network's model, and the trace of the answer by it.
  struct Untrained {
    std::unique_ptr<PairModel> model;
    NetworkTrace trace;
  };
  Subject untrained_subject(const Untrained& one) const;
  std::vector<Untrained> untrained_;
};

}  // namespace attend
