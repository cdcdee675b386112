#pragma once

#include <torch/nn/modules/linear.h>

#include <memory>

#include "attend/base/enum_names.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_encoder.h"

namespace attend {

// The vector of a text: the mean of its token vectors, or the vector of the first token.
enum class TextVector { mean, first };
inline EnumNames names_of(TextVector) { return {"mean", "first"}; }

// Activation after the optional layer on the text vector.
enum class TextActivation { none, tanh };
inline EnumNames names_of(TextActivation) { return {"none", "tanh"}; }

// A source encoder with layers; its vectors are the answer.
struct EmbedderConfig : SourceEncoderConfig {
  TextVector text_vector = TextVector::mean;
  int64_t text_depth = 0;  // size of an additional layer on the text vector; 0: no layer
  TextActivation text_activation = TextActivation::none;  // activation of that layer
  bool unit_length = false;                               // normalises the text vector to length 1
  int64_t text_cut = 0;  // how many leading numbers of the text vector are kept; 0: all

  EmbedderConfig();

  bool takes_first_vector() const { return text_vector == TextVector::first; }

  Settings settings();  // keys model.*
  // Error as SourceEncoderConfig, without layers, or if text_cut exceeds the size of the vector.
  void check() const;
};

// A sentence encoder (Reimers & Gurevych 2019) or an encoder without a head. It returns vectors of
// tokens and texts, gives no answers and cannot be trained by itself. Other types can start from
// its weights.
class Embedder : public PairNetwork {
 public:
  // Error as EmbedderConfig::check, and for frames.
  Embedder(const EmbedderConfig& config, const SourceShape& source);

  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  at::Tensor text_vector(const at::Tensor& vectors) const override;
  bool pack(WeightType weights) override { return encoder_->pack(weights); }
  bool attends() const override { return true; }
  const ContactHead* contact_head() const override { return encoder_->contact_head(); }

  // These throw an Error that suggests an alternative.
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;

 private:
  TextVector text_vector_;
  TextActivation text_activation_;
  bool unit_length_;
  int64_t text_cut_;
  torch::nn::Linear text_layer_{nullptr};  // null without that layer
  std::shared_ptr<SourceEncoder> encoder_;
};

}  // namespace attend
