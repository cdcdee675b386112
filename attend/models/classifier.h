#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/base/settings.h"
#include "attend/models/pair_network.h"
#include "attend/nn/fixed_attention.h"

namespace attend {

struct ClassifierConfig {
  std::string pooling = "mean";        // sum, mean, fixed_dot or fixed_mlp
  std::string normaliser = "softmax";  // of the fixed queries, a row of normaliser_table()
  int64_t queries = 1;                 // fixed ones
  int64_t attention_depth = 128;       // hidden units of fixed_mlp
  int64_t self_layers = 0;             // of self-attention, before the pooling
  int64_t self_heads = 4;              // of each such layer; they divide `embedding`
  int64_t embedding = 128;
  int64_t hidden = 0;  // units of a layer after the pooling; 0: none
  double word_dropout = 0.1;
  double dropout = 0.5;
  int64_t maximum_source_length = 512;

  Settings settings();  // keys model.*
  void check() const;   // Error when they do not fit each other
};

// One block of an encoder: every word's vector attends to all of them, at a learned bias for each
// distance (Raffel et al. 2020), then passes a feed-forward layer; each is added to what it read,
// which is normalised first (Vaswani et al. 2017, 3.1; Xiong et al. 2020).
class SelfAttentionLayer : public torch::nn::Module {
 public:
  // `heads` divides `depth`.
  SelfAttentionLayer(int64_t depth, int64_t heads, double dropout);

  // words [B, S, D] with lengths [B].
  at::Tensor forward(const at::Tensor& words, const at::Tensor& lengths, const Noise& noise);

  // [B, S, S], the mean over the heads.
  at::Tensor weights(const at::Tensor& words, const at::Tensor& lengths);

 private:
  struct Parts {
    at::Tensor query, key, value;  // [B, H, S, D / H]
    AttentionSpec spec;
  };
  Parts parts(const at::Tensor& words, const at::Tensor& lengths);

  int64_t heads_;
  double dropout_;
  at::Tensor distances_;  // [H, buckets]
  torch::nn::LayerNorm attention_norm_{nullptr};
  torch::nn::Linear projections_{nullptr};  // queries, keys and values
  torch::nn::Linear merge_{nullptr};
  torch::nn::LayerNorm forward_norm_{nullptr};
  torch::nn::Linear inner_{nullptr};
  torch::nn::Linear outer_{nullptr};
};

// A label for a set of word vectors, which is pooled into one vector that softmax regression reads.
// Pooled by sum or mean it is a bag of words (with a hidden layer: Iyyer et al. 2015); fixed
// queries weigh each word by itself; self-attention layers before let the words change each other,
// and then their order counts.
//
// As a network from pairs it answers with one symbol, the label, and then the end, for certain.
class Classifier : public PairNetwork {
 public:
  // The ids of both sides are a Vocabulary's. Error when a setting does not fit.
  Classifier(const ClassifierConfig& config, int64_t source_symbols, int64_t target_symbols);

  // [B, labels]: scores of the ids after Vocabulary::unknown. source [B, S], lengths [B] from 1.
  at::Tensor logits(const at::Tensor& source, const at::Tensor& lengths, const Noise& noise);

  // [B, S], where the classifier attends: the mean weights of the fixed queries, or else of the
  // mean, as the self-attention layers below spread them, by half of each word's weight and half
  // that stays, as each adds to what it reads (attention roll-out, Abnar & Zuidema 2020).
  at::Tensor word_weights(const at::Tensor& source, const at::Tensor& lengths);

  at::Tensor objective(const Batch& batch, const Noise& noise, double smoothing) override;
  StepState start(const at::Tensor& source, const at::Tensor& lengths) override;
  StepResult step(const at::Tensor& tokens, StepState& state, bool with_weights) override;
  bool attends() const override { return fixed_ != nullptr || !layers_.empty(); }

 private:
  at::Tensor pooled(const at::Tensor& words, const at::Tensor& lengths) const;

  bool mean_;
  double word_dropout_;
  double dropout_;
  torch::nn::Embedding embedding_{nullptr};
  std::vector<std::shared_ptr<SelfAttentionLayer>> layers_;
  std::shared_ptr<FixedAttention> fixed_;  // null with sum and mean
  torch::nn::Linear hidden_{nullptr};      // null without
  torch::nn::Linear output_{nullptr};
};

}  // namespace attend
