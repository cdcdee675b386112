#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/nn/attention_choices.h"
#include "attend/ops/attention.h"

namespace attend {

// Sizes of the parameters of a mechanism.
struct AttentionSizes {
  int64_t query_depth = 0;
  int64_t key_depth = 0;
  int64_t attention_depth = 0;  // hidden units of additive scores and of the predicted centre;
                                // number of random features
  int64_t keys = 0;             // number of positions of the location score
  int64_t filters = 8;       // filters of the location-sensitive score, over the previous weights
  int64_t filter_width = 7;  // odd
  // Whether vectors that biases compare with queries or keys come with each Placement, instead of
  // being parameters.
  bool given_vectors = false;
};

// Positions of the queries and keys of one call.
struct Placement {
  int64_t offset = 0;   // query i is at position i + offset of the keys
  int64_t keys = 0;     // number of keys
  int64_t queries = 0;  // number of queries of the whole sequence if other processes hold some;
                        // otherwise 0
  at::Tensor key_lengths = {};  // [B] int64, without padding; undefined: no padding
  PastWeights past = {};        // state from earlier queries
  uint64_t seed = 0;            // seed of random draws in training; 0: nothing is drawn
  at::Tensor key_numbers = {};  // [B, heads, keys], if reads_source(): a linear map of the source
  // [heads, rows, depth] by bias, if AttentionSizes::given_vectors.
  std::map<BiasKind, at::Tensor> vectors = {};
};

// Error as check_choices, if the score compares vectors of different depths, or if a score with a
// weight per key lacks the number of keys.
void check_sizes(const AttentionChoices& choices, const AttentionSizes& sizes);

// The choices of a mechanism with their trained tensors: parameters of the score, the bias, the
// sink, the predicted centre and the normaliser. A parameter has a leading head axis if there are
// several heads, as AttentionSpec requires. Parameters that are one number per head always have
// that axis.
//
// In training mode (train(), the default) hard and gumbel draw with Placement::seed. Monotonic then
// uses the expectation, with noise from that seed added to the scores (Raffel et al. 2017, 2.4).
// After eval() hard and gumbel take the largest weight, and monotonic attends to one key (their
// 2.2).
class LearnedAttention : public torch::nn::Module {
 public:
  // `bias_owner`: attention with the same heads and bias, and with the parameters of the bias;
  // null: this module has them. Error as check_sizes, and if the biases differ.
  LearnedAttention(const AttentionChoices& choices, const AttentionSizes& sizes, int64_t heads = 1,
                   std::shared_ptr<const LearnedAttention> bias_owner = nullptr);

  // The spec for queries [B, H, T, query_depth]; with one head, three or two axes are valid too.
  AttentionSpec spec(const at::Tensor& query, const Placement& placement) const;

  // The score with its trained parameters, without the other choices.
  Score score() const;

  const AttentionChoices& choices() const { return choices_; }

  // Which parts of a Placement are used: the offset; the past; the seed in training.
  bool is_positional() const;
  bool looks_back() const;
  bool draws() const;
  bool reads_source() const;  // key_numbers

 private:
  // The parameters of the bias, by name.
  torch::OrderedDict<std::string, at::Tensor> bias_parameters() const;
  void register_score(const AttentionSizes& sizes);
  void register_bias(const BiasChoice& bias);
  void register_fire(const BiasChoice& bias);
  void register_normaliser();
  at::Tensor normaliser_parameter() const;
  at::Tensor predicted_centres(const at::Tensor& query, const Placement& placement) const;
  Bias bias(const BiasChoice& choice, const at::Tensor& centres, const Placement& placement,
            int64_t query_axes) const;
  Normaliser normaliser(uint64_t seed) const;

  AttentionChoices choices_;
  int64_t heads_;
  bool given_vectors_;
  std::shared_ptr<const LearnedAttention> bias_owner_;  // null: this
  std::optional<int64_t> reach_;                        // set for a predicted centre
  Scope scope_;                                         // unused with a predicted centre
  std::vector<BiasChoice> biases_;
  const NormaliserRow* normaliser_ = nullptr;
};

}  // namespace attend
