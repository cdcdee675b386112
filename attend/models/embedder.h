#pragma once

#include <torch/nn/modules/linear.h>

#include <memory>

#include "attend/base/enum_names.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_encoder.h"

namespace attend {

// What the vector of a text is: the mean of those of its tokens, or that of the first one.
enum class TextVector { mean, first };
inline EnumNames names_of(TextVector) { return {"mean", "first"}; }

// What is done to the vector of a text behind a layer of its own.
enum class TextActivation { none, tanh };
inline EnumNames names_of(TextActivation) { return {"none", "tanh"}; }

// A source encoder of some layers whose vectors are its answer.
struct EmbedderConfig : SourceEncoderConfig {
  TextVector text_vector = TextVector::mean;
  int64_t text_depth = 0;  // of a layer that reads that vector; 0: there is none
  TextActivation text_activation = TextActivation::none;  // of what the layer gives
  bool unit_length = false;                               // of a text's vector
  int64_t text_cut = 0;  // how many numbers of that vector are kept, the first ones; 0: all

  EmbedderConfig();

  bool takes_first_vector() const { return text_vector == TextVector::first; }

  Settings settings();  // keys model.*
  // Error as SourceEncoderConfig, without layers, and where more numbers are kept than there are.
  void check() const;
};

// A sentence encoder (Reimers & Gurevych 2019) or an encoder without a head: it gives vectors of
// tokens and of texts, answers nothing, and learns nothing by itself; other types begin with its
// weights.
class Embedder : public PairNetwork {
 public:
  // Error as EmbedderConfig::check and on frames.
  Embedder(const EmbedderConfig& config, const SourceShape& source);

  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  at::Tensor text_vector(const at::Tensor& vectors) const override;
  bool pack(WeightType weights) override { return encoder_->pack(weights); }
  bool attends() const override { return true; }

  // Errors, with what to do instead.
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;

 private:
  TextVector text_vector_;
  TextActivation text_activation_;
  bool unit_length_;
  int64_t text_cut_;
  torch::nn::Linear text_layer_{nullptr};  // null without
  std::shared_ptr<SourceEncoder> encoder_;
};

}  // namespace attend
