#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/base/settings.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_encoder.h"
#include "attend/nn/fixed_attention.h"
#include "attend/nn/learned_queries.h"

namespace attend {

// How the vectors of a source become one: their sum or mean, the contexts of fixed queries, the
// vector of the class token, what a learned query with several heads makes of them
// (LearnedQueries), or the vector of the first token, where each text begins with one that stands
// for it, as those of some tokenizers do.
enum class Pooling { sum, mean, fixed_dot, fixed_mlp, class_token, multi_head, first_token };
inline EnumNames names_of(Pooling) {
  return {"sum", "mean", "fixed_dot", "fixed_mlp", "class", "multi_head", "first"};
}

struct ClassifierConfig : SourceEncoderConfig {
  Pooling pooling = Pooling::mean;
  int64_t registers = 0;  // learned vectors behind the class token, which layers read and nothing
                          // else does (Darcet et al. 2024), such as DeiT's for distillation
  std::string pooling_normaliser = "softmax";  // of learned queries, as FixedAttention takes it
  int64_t queries = 1;                         // fixed ones; multi_head has one
  int64_t attention_depth = 128;               // hidden units of fixed_mlp
  int64_t hidden = 0;                          // units of a layer after the pooling; 0: none
  HiddenActivation hidden_activation = HiddenActivation::relu;  // of those
  bool hidden_norm = false;                                     // whether they are normalised then
  double word_dropout = 0.1;
  double output_dropout = 0.5;

  Settings settings();  // keys model.*
  void check() const;   // Error when they do not fit each other
  int64_t class_tokens() const { return pooling == Pooling::class_token ? 1 + registers : 0; }
  // The setting because of which nothing attends, where nothing does.
  std::string why_no_weights() const;
};

// A label for a text, an image or a sound: the vectors of its words, patches or frames, encoded,
// are pooled into one that softmax regression reads. Without layers, pooled by sum or mean, it is a
// bag of words (with a hidden layer: Iyyer et al. 2015); fixed queries weigh each vector by itself;
// layers let them change each other, and then their order counts.
//
// A network from pairs answers; this one gives one token, the label, which no EOS follows. Where
// targets are numbers it gives one: linear regression in place of softmax regression.
class Classifier : public PairNetwork {
 public:
  // The ids of tokens and targets are a Vocabulary's; `target_tokens` may be number_targets. Error
  // when a setting does not fit.
  Classifier(const ClassifierConfig& config, const SourceShape& source, int64_t target_tokens);

  // [B, labels]: scores of the ids after Vocabulary::unknown; [B, 1], the number. source [B, S] or
  // frames [B, S, F], lengths [B] from 1.
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // [B, S], where the classifier attends: the mean weights of the learned queries or heads, or else
  // those of the mean or of the class token (which add up to 1 without its own), as the layers
  // below spread them.
  at::Tensor word_weights(const at::Tensor& source, const at::Tensor& lengths);

  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool attends() const override { return attends_; }

 private:
  struct State;

  // [B, tokens of a target]: labels begin after Vocabulary::unknown. [B, 1]: the number.
  at::Tensor answer_scores(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass,
                           c10::optional<at::ScalarType> type = {});
  at::Tensor pooled(const StackSource& words, const Pass& pass) const;

  Pooling pooling_;
  int64_t class_tokens_;
  HiddenActivation hidden_activation_;
  bool answers_numbers_;
  bool attends_;
  double word_dropout_, output_dropout_;
  std::shared_ptr<SourceEncoder> encoder_;
  std::shared_ptr<FixedAttention> fixed_;       // null but for fixed queries
  std::shared_ptr<LearnedQueries> multi_head_;  // null but for pooling by several heads
  torch::nn::Linear hidden_{nullptr};           // null without
  torch::nn::LayerNorm hidden_norm_{nullptr};   // the same
  torch::nn::Linear output_{nullptr};
};

}  // namespace attend
