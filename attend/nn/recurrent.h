#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "attend/nn/dropout.h"

namespace attend {

// The cells a recurrent layer can be made of.
enum class Cell { gru, lstm };

// "gru" or "lstm"; Error otherwise.
Cell parse_cell(const std::string& name);

// One step of a recurrence: GRU (Cho et al. 2014) or LSTM (Hochreiter & Schmidhuber 1997).
class RecurrentCell : public torch::nn::Module {
 public:
  RecurrentCell(Cell cell, int64_t input_depth, int64_t hidden);

  // Tensors that a state holds: the hidden state and, for an LSTM, the cell state.
  int64_t state_size() const { return gru_ ? 1 : 2; }

  // input [B, D], state {[B, hidden], ...} -> the next state; its first tensor is the output.
  std::vector<at::Tensor> forward(const at::Tensor& input, const std::vector<at::Tensor>& state);

 private:
  torch::nn::GRUCell gru_{nullptr};
  torch::nn::LSTMCell lstm_{nullptr};
};

// A stack of bidirectional recurrent layers (Schuster & Paliwal 1997). Padding is skipped: each
// direction sees the true sequence alone.
class BidirectionalEncoder : public torch::nn::Module {
 public:
  // `hidden` is the depth of the annotations: half of it a direction, so it must be even.
  BidirectionalEncoder(Cell cell, int64_t input_depth, int64_t hidden, int64_t layers,
                       double dropout);

  // x [B, S, D], lengths [B] int64 on the CPU, at least 1 -> annotations [B, S, hidden]; zero where
  // padded. Dropout falls between layers.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths, const Noise& noise);

  // The same without padding and dropout, one step after another in the last layer. `states` takes
  // the hidden states of its forward direction, [B, hidden / 2] a symbol: variables that what is
  // computed from the annotations can be differentiated by.
  at::Tensor unrolled(const at::Tensor& x, std::vector<at::Tensor>& states);

 private:
  at::Tensor layer(size_t index, const at::Tensor& x, const at::Tensor& lengths);

  std::vector<torch::nn::GRU> gru_;
  std::vector<torch::nn::LSTM> lstm_;
  double dropout_;
};

}  // namespace attend
