#pragma once

#include <torch/nn/modules/rnn.h>

#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/nn/dropout.h"

namespace attend {

// The cells a recurrent layer can be made of.
enum class Cell { gru, lstm };
inline EnumNames names_of(Cell) { return {"gru", "lstm"}; }

// Recurrent layers, one on top of the other.
struct RecurrentLayers {
  int64_t count = 1;
  double dropout = 0;     // of what a layer gives to the one above
  bool residual = false;  // above the first, a layer's input is added to its output (Wu et
                          // al. 2016, 3.1)
  bool backward = true;   // an encoder's layers read the sequence from its end too
};

// What maps of a recurrent decoder's step read: the token before, embedded; the state of the
// recurrence and the context as they are then; something of the source.
enum class StepVector { token, state, context, extra };

// One step of a recurrence: GRU (Cho et al. 2014) or LSTM (Hochreiter & Schmidhuber 1997).
class RecurrentCell : public torch::nn::Module {
 public:
  RecurrentCell(Cell cell, int64_t input_depth, int64_t hidden, const RecurrentLayers& layers = {});

  bool is_lstm() const { return !lstm_.empty(); }
  int64_t hidden() const { return hidden_; }
  const RecurrentLayers& layers() const { return layers_; }

  // Tensors that a state holds: of each layer the hidden state and, for an LSTM, the cell state.
  int64_t state_size() const { return static_cast<int64_t>(gru_.size() + 2 * lstm_.size()); }

  // input [B, D], state {[B, hidden], ...} -> the next state. Dropout falls between layers.
  std::vector<at::Tensor> forward(const at::Tensor& input, const std::vector<at::Tensor>& state,
                                  const Pass& pass = {});

  // What the recurrence gives in a state, [B, hidden]: the hidden state of the last layer or, where
  // layers add what they read, the sum of all.
  at::Tensor output(const std::vector<at::Tensor>& state) const;

 private:
  size_t tensors_per_layer() const { return lstm_.empty() ? 1 : 2; }

  int64_t hidden_;
  RecurrentLayers layers_;
  std::vector<torch::nn::GRUCell> gru_;
  std::vector<torch::nn::LSTMCell> lstm_;
};

// A stack of bidirectional recurrent layers (Schuster & Paliwal 1997), or of layers that read
// forward alone. Padding is skipped: each direction sees the true sequence alone.
class BidirectionalEncoder : public torch::nn::Module {
 public:
  // `hidden` is the depth of the annotations: half of it per direction, so it must be even where
  // there are two.
  BidirectionalEncoder(Cell cell, int64_t input_depth, int64_t hidden,
                       const RecurrentLayers& layers);

  // x [B, S, D], lengths [B] int64 on the CPU, at least 1 -> annotations [B, S, hidden]; zero where
  // padded. Dropout falls between layers.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths, const Pass& pass);

  // The same without padding and dropout, one step after another in the last layer. `states` takes
  // the hidden states of its forward direction, [B, hidden / 2] per token, or [B, hidden] where
  // there is no other: variables by which results of the annotations can be differentiated.
  at::Tensor unrolled(const at::Tensor& x, std::vector<at::Tensor>& states);

 private:
  at::Tensor layer(size_t index, const at::Tensor& x, const at::Tensor& lengths, const Pass& pass);
  // What leaves a layer that gave `output` for `input`.
  at::Tensor leaving(size_t index, const at::Tensor& input, const at::Tensor& output) const;

  RecurrentLayers layers_;
  std::vector<torch::nn::GRU> gru_;
  std::vector<torch::nn::LSTM> lstm_;
};

}  // namespace attend
