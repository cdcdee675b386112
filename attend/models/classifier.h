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

// How the vectors of a source become one vector: sum or mean, contexts of fixed queries, vector of
// the class token, output of a learned query with several heads (LearnedQueries), vector of the
// first token. The latter suits tokenizers that begin each text with a token that represents it.
enum class Pooling { sum, mean, fixed_dot, fixed_mlp, class_token, multi_head, first_token };
inline EnumNames names_of(Pooling) {
  return {"sum", "mean", "fixed_dot", "fixed_mlp", "class", "multi_head", "first"};
}

struct ClassifierConfig : SourceEncoderConfig {
  Pooling pooling = Pooling::mean;
  int64_t registers = 0;  // learned vectors after the class token that only layers read (Darcet et
                          // al. 2024), such as DeiT's distillation token
  std::string pooling_normaliser = "softmax";  // normaliser of learned queries, see FixedAttention
  int64_t queries = 1;                         // number of fixed queries; 1 for multi_head
  int64_t attention_depth = 128;               // hidden units of fixed_mlp
  int64_t hidden = 0;                          // units of a layer after the pooling; 0: none
  HiddenActivation hidden_activation = HiddenActivation::relu;  // activation of these units
  bool hidden_norm = false;  // whether the activated units are normalised
  double word_dropout = 0.1;
  double output_dropout = 0.5;

  Settings settings();         // keys model.*
  Settings weight_settings();  // see NetworkConfig::weight_settings()
  void check() const;          // Error if settings contradict each other
  int64_t class_tokens() const { return pooling == Pooling::class_token ? 1 + registers : 0; }
  // The setting that disables attention, for a network without attention.
  std::string no_weights_reason() const;
};

// A label for a text, an image or a sound. The vectors of its words, patches or frames are encoded
// and pooled into one vector, which softmax regression reads. Without layers, pooling by sum or
// mean gives a bag of words (with a hidden layer: Iyyer et al. 2015). Fixed queries weight each
// vector by itself. With layers the vectors interact, and their order matters.
//
// The answer has one token, the label, without EOS. For number targets the answer is a number:
// linear regression replaces softmax regression. For sets of labels there is a logistic regression
// per label.
class Classifier : public PairNetwork {
 public:
  // The ids of tokens and targets are ids of a Vocabulary; any TargetShape is supported.
  // Error if a setting does not fit.
  Classifier(const ClassifierConfig& config, const SourceShape& source, const TargetShape& target);

  // [B, labels], scores of the ids after Vocabulary::unknown, or [B, 1], the number. source [B, S]
  // or frames [B, S, F], lengths [B] from 1.
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass);

  // [B, S], if the classifier attends: mean weights of the learned queries or heads, or the weights
  // of the mean or of the class token, propagated through the layers below. Weights of the class
  // token exclude its weight on itself and sum to 1.
  at::Tensor word_weights(const at::Tensor& source, const at::Tensor& lengths);

  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override;
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool pack(WeightType weights) override { return encoder_->pack(weights); }
  bool packs_objective() const override { return true; }
  bool attends() const override { return attends_; }
  const ContactHead* contact_head() const override { return encoder_->contact_head(); }

 private:
  struct State;

  at::Tensor pooled(const StackSource& words, const Pass& pass) const;

  Pooling pooling_;
  int64_t class_tokens_;
  int64_t pair_tokens_;  // PairForm::tokens; 0 for other sources
  HiddenActivation hidden_activation_;
  TargetShape target_;
  bool attends_;
  double word_dropout_, output_dropout_;
  std::shared_ptr<SourceEncoder> encoder_;
  std::shared_ptr<FixedAttention> fixed_;       // null unless pooling by fixed queries
  std::shared_ptr<LearnedQueries> multi_head_;  // null unless pooling by several heads
  torch::nn::Linear hidden_{nullptr};           // null without hidden units
  torch::nn::LayerNorm hidden_norm_{nullptr};   // null unless the hidden units are normalised
  torch::nn::Linear output_{nullptr};
};

}  // namespace attend
