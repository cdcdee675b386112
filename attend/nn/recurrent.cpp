#include "attend/nn/recurrent.h"

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;
namespace rnn = torch::nn::utils::rnn;

// Packing costs copies, so batches of one length skip it.
template <class Layer>
Tensor run(Layer& layer, const Tensor& x, const Tensor& lengths) {
  if (lengths.min().template item<int64_t>() == x.size(1)) return std::get<0>(layer->forward(x));
  const auto packed = rnn::pack_padded_sequence(x, lengths, /*batch_first=*/true,
                                                /*enforce_sorted=*/false);
  const auto output = std::get<0>(layer->forward_with_packed_input(packed));
  return std::get<0>(rnn::pad_packed_sequence(output, /*batch_first=*/true, 0.0, x.size(1)));
}

}  // namespace

Cell parse_cell(const std::string& name) {
  if (name == "gru") return Cell::gru;
  if (name == "lstm") return Cell::lstm;
  fail("no recurrent cell is called \"{}\"; there are gru and lstm", name);
}

RecurrentCell::RecurrentCell(Cell cell, int64_t input_depth, int64_t hidden) {
  if (cell == Cell::gru)
    gru_ = register_module("gru", torch::nn::GRUCell(input_depth, hidden));
  else
    lstm_ = register_module("lstm", torch::nn::LSTMCell(input_depth, hidden));
}

std::vector<Tensor> RecurrentCell::forward(const Tensor& input, const std::vector<Tensor>& state) {
  if (gru_) return {gru_->forward(input, state[0])};
  const auto [hidden, cell] = lstm_->forward(input, std::make_tuple(state[0], state[1]));
  return {hidden, cell};
}

BidirectionalEncoder::BidirectionalEncoder(Cell cell, int64_t input_depth, int64_t hidden,
                                           int64_t layers, double dropout)
    : dropout_(dropout) {
  if (hidden % 2 != 0) fail("a bidirectional encoder needs an even depth, got {}", hidden);
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t depth = i == 0 ? input_depth : hidden;
    const std::string name = "layer" + std::to_string(i);
    if (cell == Cell::gru) {
      const auto options =
          torch::nn::GRUOptions(depth, hidden / 2).bidirectional(true).batch_first(true);
      gru_.push_back(register_module(name, torch::nn::GRU(options)));
    } else {
      const auto options =
          torch::nn::LSTMOptions(depth, hidden / 2).bidirectional(true).batch_first(true);
      lstm_.push_back(register_module(name, torch::nn::LSTM(options)));
    }
  }
}

Tensor BidirectionalEncoder::layer(size_t index, const Tensor& x, const Tensor& lengths) {
  return lstm_.empty() ? run(gru_[index], x, lengths) : run(lstm_[index], x, lengths);
}

Tensor BidirectionalEncoder::forward(const Tensor& x, const Tensor& lengths, const Noise& noise) {
  Tensor output = x;
  for (size_t i = 0; i < gru_.size() + lstm_.size(); ++i)
    output = layer(i, i == 0 ? output : attend::dropout(output, dropout_, noise), lengths);
  return output;
}

}  // namespace attend
