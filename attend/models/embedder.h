#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_encoder.h"
#include "attend/models/text_comparison.h"

namespace attend {

// How token vectors become the vector of a text.
enum class TextVector {
  mean,
  first,          // vector of the first token
  last,           // vector of the last token
  maximum,        // maximum of each number over all tokens
  weighted_mean,  // mean with weights 1, 2, .. in the order of tokens (Muennighoff 2022)
  mean_by_root,   // sum divided by the square root of the number of tokens
};
inline EnumNames names_of(TextVector) {
  return {"mean", "first", "last", "maximum", "weighted_mean", "mean_by_root"};
}

// Activation after the optional layer on the text vector.
enum class TextActivation { none, tanh };
inline EnumNames names_of(TextActivation) { return {"none", "tanh"}; }

// A source encoder with layers; its vectors are the answer.
struct EmbedderConfig : SourceEncoderConfig {
  std::string text_vector = "mean";  // TextVector, or several, separated by commas: concatenated
  int64_t text_depth = 0;            // size of an additional layer on the text vector; 0: no layer
  TextActivation text_activation = TextActivation::none;  // activation of that layer
  bool text_norm = false;    // normalises the text vector to mean 0 and variance 1, with weights
  bool unit_length = false;  // normalises the text vector to length 1
  int64_t text_cut = 0;      // how many leading numbers of the text vector are kept; 0: all
  TextSimilarity text_similarity = TextSimilarity::cosine;  // how texts are compared
  std::string prompts = {};                                 // see read_text_prompts()
  std::string default_prompt = {};                          // name of the usual one
  bool pool_prompt = true;  // whether tokens of a prompt are part of the text vector

  EmbedderConfig();

  std::vector<TextVector> text_vectors() const;  // Error on an unknown name
  int64_t pooled_depth() const;                  // depth of all these vectors together
  int64_t text_size() const;                     // depth of the text vector before text_cut
  bool takes_first_vector() const {
    return text_vectors() == std::vector<TextVector>{TextVector::first};
  }

  Settings settings();  // keys model.*
  // Error as SourceEncoderConfig, without layers, or if text_cut exceeds the size of the vector.
  void check() const;
};

// A sentence encoder (Reimers & Gurevych 2019) or an encoder without a head. It returns vectors of
// tokens and texts, gives no answers and cannot be trained by itself. Other types can start from
// its weights.
class Embedder : public PairNetwork, public TextComparison {
 public:
  // Error as EmbedderConfig::check, and for frames.
  Embedder(const EmbedderConfig& config, const SourceShape& source);

  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  at::Tensor text_vector(const at::Tensor& vectors) const override {
    return text_vectors(vectors, {});
  }
  at::Tensor text_vectors(const at::Tensor& vectors, const Pass& pass) const override {
    return text_vectors(vectors, 0, pass);
  }
  at::Tensor text_vector_after(const at::Tensor& vectors, int64_t skipped) const override {
    return text_vectors(vectors, skipped, {});
  }
  TextSimilarity similarity() const override { return similarity_; }
  const TextPrompts& prompts() const override { return prompts_; }
  bool pack(WeightType weights) override { return encoder_->pack(weights); }
  bool attends() const override { return true; }
  const ContactHead* contact_head() const override { return encoder_->contact_head(); }

  // These throw an Error that suggests an alternative.
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;

 private:
  at::Tensor text_vectors(const at::Tensor& vectors, int64_t skipped, const Pass& pass) const;

  std::vector<TextVector> text_vectors_;
  TextActivation text_activation_;
  bool unit_length_;
  int64_t text_cut_;
  TextSimilarity similarity_;
  TextPrompts prompts_;
  torch::nn::Linear text_layer_{nullptr};    // null without that layer
  torch::nn::LayerNorm text_norm_{nullptr};  // null without that norm
  std::shared_ptr<SourceEncoder> encoder_;
};

}  // namespace attend
