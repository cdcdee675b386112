#include "attend/nn/recurrent.h"

#include <torch/nn/utils/rnn.h>

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
  // Does what rnn::pad_packed_sequence does, which fails on an accelerator: it sorts lengths, which
  // are the CPU's, by indices that are not.
  const Tensor sorted = std::get<0>(at::_pad_packed_sequence(output.data(), output.batch_sizes(),
                                                             /*batch_first=*/true, 0.0, x.size(1)));
  return sorted.index_select(0, output.unsorted_indices());
}

// One direction of a layer over x [B, S, D]: the hidden states in the order of the tokens.
std::vector<Tensor> steps(const torch::nn::Module& layer, bool is_lstm, bool backward,
                          const Tensor& x) {
  const auto named = layer.named_parameters();
  const std::string end = backward ? "_l0_reverse" : "_l0";
  const Tensor &from_input = named["weight_ih" + end], &from_state = named["weight_hh" + end];
  const Tensor &input_bias = named["bias_ih" + end], &state_bias = named["bias_hh" + end];
  Tensor hidden = x.new_zeros({x.size(0), from_state.size(1)}), cell = hidden;
  std::vector<Tensor> states(static_cast<size_t>(x.size(1)));
  for (int64_t i = 0; i < x.size(1); ++i) {
    const int64_t t = backward ? x.size(1) - 1 - i : i;
    if (is_lstm)
      std::tie(hidden, cell) = at::lstm_cell(x.select(1, t), {hidden, cell}, from_input, from_state,
                                             input_bias, state_bias);
    else
      hidden = at::gru_cell(x.select(1, t), hidden, from_input, from_state, input_bias, state_bias);
    states[static_cast<size_t>(t)] = hidden;
  }
  return states;
}

}  // namespace

Cell parse_cell(const std::string& name) {
  if (name == "gru") return Cell::gru;
  if (name == "lstm") return Cell::lstm;
  fail("no recurrent cell is called {}; there are gru and lstm", in_quotes(name));
}

RecurrentCell::RecurrentCell(Cell cell, int64_t input_depth, int64_t hidden,
                             const RecurrentLayers& layers)
    : hidden_(hidden), layers_(layers) {
  for (int64_t i = 0; i < layers.count; ++i) {
    const int64_t depth = i == 0 ? input_depth : hidden;
    const std::string number = i == 0 ? "" : std::to_string(i);
    if (cell == Cell::gru)
      gru_.push_back(register_module("gru" + number, torch::nn::GRUCell(depth, hidden)));
    else
      lstm_.push_back(register_module("lstm" + number, torch::nn::LSTMCell(depth, hidden)));
  }
}

std::vector<Tensor> RecurrentCell::forward(const Tensor& input, const std::vector<Tensor>& state,
                                           const DropoutGenerator& generator) {
  std::vector<Tensor> next;
  next.reserve(state.size());
  Tensor given;
  for (size_t i = 0; i < gru_.size() + lstm_.size(); ++i) {
    const Tensor read = i == 0 ? input : attend::dropout(given, layers_.dropout, generator);
    if (lstm_.empty()) {
      next.push_back(gru_[i]->forward(read, state[i]));
    } else {
      const auto [hidden, cell] =
          lstm_[i]->forward(read, std::make_tuple(state[2 * i], state[2 * i + 1]));
      next.insert(next.end(), {hidden, cell});
    }
    const Tensor& hidden = next[i * tensors_a_layer()];
    given = layers_.residual && i > 0 ? given + hidden : hidden;
  }
  return next;
}

Tensor RecurrentCell::output(const std::vector<Tensor>& state) const {
  const size_t last = state.size() - tensors_a_layer();
  Tensor sum = state[last];
  for (size_t i = 0; layers_.residual && i < last; i += tensors_a_layer()) sum = sum + state[i];
  return sum;
}

BidirectionalEncoder::BidirectionalEncoder(Cell cell, int64_t input_depth, int64_t hidden,
                                           const RecurrentLayers& layers)
    : layers_(layers) {
  if (hidden % 2 != 0) fail("a bidirectional encoder needs an even depth, got {}", hidden);
  for (int64_t i = 0; i < layers.count; ++i) {
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

Tensor BidirectionalEncoder::leaving(size_t index, const Tensor& input,
                                     const Tensor& output) const {
  return layers_.residual && index > 0 ? input + output : output;
}

Tensor BidirectionalEncoder::forward(const Tensor& x, const Tensor& lengths,
                                     const DropoutGenerator& generator) {
  Tensor output = layer(0, x, lengths);
  for (size_t i = 1; i < gru_.size() + lstm_.size(); ++i)
    output =
        leaving(i, output, layer(i, attend::dropout(output, layers_.dropout, generator), lengths));
  return output;
}

Tensor BidirectionalEncoder::unrolled(const Tensor& x, std::vector<Tensor>& states) {
  const bool is_lstm = gru_.empty();
  const size_t last = gru_.size() + lstm_.size() - 1;
  const Tensor lengths = at::full({x.size(0)}, x.size(1), at::kLong);
  Tensor input = x;
  for (size_t i = 0; i < last; ++i) input = leaving(i, input, layer(i, input, lengths));
  const torch::nn::Module& top = is_lstm ? static_cast<const torch::nn::Module&>(*lstm_[last])
                                         : static_cast<const torch::nn::Module&>(*gru_[last]);
  states = steps(top, is_lstm, false, input);
  return leaving(
      last, input,
      at::cat({at::stack(states, 1), at::stack(steps(top, is_lstm, true, input), 1)}, 2));
}

}  // namespace attend
