#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/nn/attention_choices.h"
#include "attend/ops/attention.h"

namespace attend {

// Depths of what attention compares.
struct AttentionSizes {
  int64_t query_depth = 0;
  int64_t key_depth = 0;
  int64_t attention_depth = 0;  // hidden units of the additive scores and of the predicted centre,
                                // random features
  int64_t keys = 0;             // positions of the location score
  int64_t filters = 8;          // of the location-sensitive score, over the weights before
  int64_t filter_width = 7;     // odd
};

// The positions of the queries of one call, and the keys around them.
struct Placement {
  int64_t offset = 0;           // query i is at position i + offset of the keys
  int64_t keys = 0;             // how many there are
  int64_t queries = 0;          // where some of them are elsewhere, their number; else 0
  at::Tensor key_lengths = {};  // [B] int64: where padding begins; undefined: there is none
  PastWeights past = {};        // what queries before those of the call gave
  uint64_t seed = 0;            // of what is drawn while training; 0: nothing is
};

// Error as check_choices, when the score compares depths that differ, and when a score that has a
// weight per key comes without a number of keys.
void check_sizes(const AttentionChoices& choices, const AttentionSizes& sizes);

// A mechanism's choices with the tensors that they train: parameters of the score, the bias, the
// sink and the predicted centre. A parameter has a leading axis of heads when there are several,
// as AttentionSpec wants it; numbers per head always have it.
//
// While training (train(), the default) hard and gumbel draw by Placement::seed and monotonic takes
// the expectation, its scores disturbed by noise of that seed (Raffel et al. 2017, 2.4); after
// eval() hard and gumbel take the largest weight and monotonic looks at one key (their 2.2).
class LearnedAttention : public torch::nn::Module {
 public:
  // Error as check_sizes.
  LearnedAttention(const AttentionChoices& choices, const AttentionSizes& sizes, int64_t heads = 1);

  // The spec for queries [B, H, T, query_depth], with one head also of three axes or two.
  AttentionSpec spec(const at::Tensor& query, const Placement& placement) const;

  // The trained score alone.
  Score score() const;

  const AttentionChoices& choices() const { return choices_; }

  // Which parts of a placement matter: the offset, the past, the seed while training.
  bool is_positional() const;
  bool looks_back() const;
  bool draws() const;

 private:
  void register_score(const AttentionSizes& sizes);
  void register_bias(const BiasChoice& bias);
  at::Tensor predicted_centres(const at::Tensor& query, const Placement& placement) const;
  Bias bias(const BiasChoice& choice, const at::Tensor& centres, int64_t query_axes) const;
  Normaliser normaliser(uint64_t seed) const;

  AttentionChoices choices_;
  int64_t heads_;
  std::optional<int64_t> reach_;  // of a predicted centre
  Scope scope_;                   // without one; else all keys
  std::vector<BiasChoice> biases_;
  const NormaliserRow* normaliser_ = nullptr;
};

}  // namespace attend
