#pragma once

#include <torch/nn/modules/conv.h>

#include <memory>
#include <vector>

#include "attend/base/settings.h"
#include "attend/data/source_shape.h"
#include "attend/nn/dropout.h"
#include "attend/nn/pass.h"

namespace attend {

// How a network reads images.
struct ImageInputConfig {
  int64_t convolutions = 0;  // number of 3 x 3 convolutions with ReLU that each halve height and
                             // width; they leave one vector per patch of 2^convolutions pixels per
                             // side. One more convolution spreads these over their neighbours. If
                             // sets contain images, the vectors of an image are concatenated
  int64_t channels = 8;      // channels of the first convolution; each doubles them
  bool flip = false;         // in training, mirrors half of the images at random, left to right
  int64_t shift = 0;  // in training, maximum random shift of an image in pixels, vertically and
                      // horizontally

  Settings settings();  // keys model.*

  // Error, with an alternative, if the settings do not fit the shape.
  void check(const SourceShape& shape) const;
};

// Ids of the vocabulary in a source [B, S] of tokens: without the side of each token of a pair.
at::Tensor token_ids(const SourceShape& shape, const at::Tensor& source);

// Maps a source to vectors, without positions: tokens by an embedding; frames by a linear map,
// after optional convolutions for images.
class SourceInput : public torch::nn::Module {
 public:
  // Error as ImageInputConfig::check.
  SourceInput(const SourceShape& shape, int64_t depth, const ImageInputConfig& image = {});

  // [B, S] int64 or [B, S, F] -> [B, S, depth]. Error if the source is of the wrong kind, or if
  // frames have another depth or an image another number of patches. Multiplies vectors of tokens
  // by `factors` [B, S, 1] if defined.
  at::Tensor forward(const at::Tensor& source, const Pass& pass, const at::Tensor& factors = {});

  // The embedding matrix [tokens, depth], for sharing; for frames the linear map [depth, ..].
  const at::Tensor& weight() const { return weight_; }

 private:
  at::Tensor moved(const at::Tensor& image, const Pass& pass) const;
  at::Tensor convolved(at::Tensor image);

  SourceShape shape_;
  bool flip_;
  int64_t shift_;
  at::Tensor weight_;
  at::Tensor bias_;  // for frames
  std::vector<torch::nn::Conv2d> convolutions_;
};

}  // namespace attend
