#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformer.h>

#include <utility>

#include "attend/data/batches.h"

namespace attend {

// Straightforward models from LibTorch's layers, to compare with Attend's.
struct PlainSizes {
  int64_t source_tokens = 0;
  int64_t target_tokens = 0;
  int64_t depth = 128;  // size of the Transformer's vectors and the recurrent model's embeddings
  int64_t heads = 4;
  int64_t layers = 4;  // on each side
  int64_t feed_forward = 256;
  int64_t hidden = 256;  // recurrent model only
  double dropout = 0.1;
};

// torch::nn::Transformer between embeddings with sinusoidal positions and a linear output.
class PlainTransformer : public torch::nn::Module {
 public:
  explicit PlainTransformer(const PlainSizes& sizes);

  at::Tensor logits(const Batch& batch);  // [T, B, V]

  // encode() returns the source for decode(), [S, B, D]. decode() runs all layers over all targets
  // so far, [T, B], and returns the last logits [B, V].
  at::Tensor encode(const at::Tensor& source, const at::Tensor& padding);
  at::Tensor decode(const at::Tensor& before, const at::Tensor& memory, const at::Tensor& padding);

 private:
  at::Tensor embedded(torch::nn::Embedding& embedding, const at::Tensor& tokens) const;

  double dropout_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  torch::nn::Transformer transformer_{nullptr};
  torch::nn::Linear output_{nullptr};
};

// A bidirectional torch::nn::GRU, and a torch::nn::GRUCell with additive attention at each step
// (Bahdanau et al. 2015) and a maxout readout.
class PlainRecurrent : public torch::nn::Module {
 public:
  explicit PlainRecurrent(const PlainSizes& sizes);

  at::Tensor logits(const Batch& batch);  // [T, B, V]

 private:
  double dropout_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  torch::nn::GRU encoder_{nullptr};
  torch::nn::GRUCell decoder_{nullptr};
  torch::nn::Linear initial_{nullptr}, query_{nullptr}, key_{nullptr}, score_{nullptr};
  torch::nn::Linear readout_{nullptr}, output_{nullptr};
};

// [B, S], true after the lengths [B].
at::Tensor padding_of(const at::Tensor& source, const at::Tensor& lengths);

}  // namespace attend
