#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "attend/explain/evidence.h"

namespace attend {

// What figures need to know of an answer, whatever the map; computed when it is first asked for.
class AnswerEvidence {
 public:
  AnswerEvidence(const Subject& subject, const WeightTestOptions& options);

  // Means over the tokens of the answer of the probability lost without the best tokens of a
  // source, and with them alone.
  struct Erased {
    double without = 0, with = 0;
  };
  Erased erase(const at::Tensor& scores);
  Erased erase_in_random_order();

  // Share of the answer's tokens that change without their source token of the largest score, and
  // without any.
  double flips_of_largest(const at::Tensor& scores);
  double flips_of_any();

  // The weights that the answer is read off; null where there are none.
  const WeightTests* weight_tests();

  // Mean Kendall's tau over the tokens of the answer.
  double tau(const at::Tensor& a, const at::Tensor& b) const;
  const at::Tensor& gradient();   // [T, S], weights held
  const at::Tensor& occlusion();  // [T, S]: how far probabilities move without each token
  // What the method says of an untrained network of this kind.
  at::Tensor untrained_scores(const MethodRow& method);

 private:
  void read_without_each();

  const Subject& subject_;
  WeightTestOptions options_;
  std::vector<int64_t> rows_;  // of the answer, that are looked at
  at::Tensor plain_;           // [T]: probabilities
  at::Tensor answered_;        // [T]: the most probable tokens
  bool has_weights_;
  at::Tensor gradient_, occlusion_;
  at::Tensor changed_;  // [T, S]: whether the token changes without each other
  std::optional<WeightTests> weights_;
  at::Tensor erased_scores_;  // that erase() was last asked for, and its answer
  Erased erased_;
  std::optional<Erased> random_;
  std::optional<PairModel> untrained_;
};

}  // namespace attend
