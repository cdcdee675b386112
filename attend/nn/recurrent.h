#pragma once

#include <torch/nn/modules/rnn.h>

#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/nn/dropout.h"

namespace attend {

// The cells of recurrent layers.
enum class Cell { gru, lstm };
inline EnumNames names_of(Cell) { return {"gru", "lstm"}; }

// Recurrent layers, stacked.
struct RecurrentLayers {
  int64_t count = 1;
  double dropout = 0;     // between layers
  bool residual = false;  // from the second layer on, a layer's input is added to its output (Wu et
                          // al. 2016, 3.1)
  bool backward = true;   // an encoder's layers also read the sequence backward
};

// Inputs of the maps in a step of a recurrent decoder: embedding of the previous token, current
// state of the recurrence, current context, extra vector of the source.
enum class StepVector { token, state, context, extra };

// One step of a recurrence: GRU (Cho et al. 2014) or LSTM (Hochreiter & Schmidhuber 1997).
class RecurrentCell : public torch::nn::Module {
 public:
  RecurrentCell(Cell cell, int64_t input_depth, int64_t hidden, const RecurrentLayers& layers = {});

  bool is_lstm() const { return !lstm_.empty(); }
  int64_t hidden() const { return hidden_; }
  const RecurrentLayers& layers() const { return layers_; }

  // Number of tensors in a state: the hidden state of each layer and, for an LSTM, its cell state.
  int64_t state_size() const { return static_cast<int64_t>(gru_.size() + 2 * lstm_.size()); }

  // input [B, D], state {[B, hidden], ...} -> the next state. Dropout applies between layers.
  std::vector<at::Tensor> forward(const at::Tensor& input, const std::vector<at::Tensor>& state,
                                  const Pass& pass = {});

  // Output of the recurrence in a state, [B, hidden]: the hidden state of the last layer or, with
  // residual layers, the sum of all hidden states.
  at::Tensor output(const std::vector<at::Tensor>& state) const;

 private:
  size_t tensors_per_layer() const { return lstm_.empty() ? 1 : 2; }

  int64_t hidden_;
  RecurrentLayers layers_;
  std::vector<torch::nn::GRUCell> gru_;
  std::vector<torch::nn::LSTMCell> lstm_;
};

// A stack of bidirectional recurrent layers (Schuster & Paliwal 1997), or of layers that only read
// forward. Padding is skipped in both directions.
class BidirectionalEncoder : public torch::nn::Module {
 public:
  // `hidden` is the depth of the annotations. If there are two directions, each has half of it, so
  // it must be even.
  BidirectionalEncoder(Cell cell, int64_t input_depth, int64_t hidden,
                       const RecurrentLayers& layers);

  // x [B, S, D], lengths [B] int64 on the CPU, at least 1 -> annotations [B, S, hidden], zero at
  // padding. Dropout applies between layers.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths, const Pass& pass);

  // As forward, without padding and dropout, with the last layer computed step by step. `states`
  // receives the hidden states of its forward direction per token: [B, hidden / 2], or [B, hidden]
  // if there is only one direction. Results can be differentiated with respect to them.
  at::Tensor unrolled(const at::Tensor& x, std::vector<at::Tensor>& states);

 private:
  at::Tensor layer(size_t index, const at::Tensor& x, const at::Tensor& lengths, const Pass& pass);
  // Output of a layer after its residual connection, if any.
  at::Tensor leaving(size_t index, const at::Tensor& input, const at::Tensor& output) const;

  RecurrentLayers layers_;
  std::vector<torch::nn::GRU> gru_;
  std::vector<torch::nn::LSTM> lstm_;
};

}  // namespace attend
