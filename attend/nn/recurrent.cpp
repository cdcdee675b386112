#include "attend/nn/recurrent.h"

#include <torch/nn/utils/rnn.h>

#include "attend/base/error.h"
#include "attend/nn/linear.h"
#include "attend/nn/recurrent_gates.h"

namespace attend {
namespace {

using at::Tensor;
namespace rnn = torch::nn::utils::rnn;

// Weights of a cell, or of one direction of a layer.
struct Maps {
  const Tensor &from_input, &from_state, &input_bias, &state_bias;
};

// The next state, {h} of a GRU or {h, c} of an LSTM. `given` is the output of the input map.
std::vector<Tensor> next_state(const Maps& maps, const Tensor& given,
                               const std::vector<Tensor>& state, const Pass& pass) {
  const Tensor recurrent = linear(state[0], maps.from_state, maps.state_bias, pass);
  if (state.size() == 1) return {gru_gates(given, recurrent, state[0])};
  const auto [hidden, cell] = lstm_gates(given + recurrent, state[1]);
  return {hidden, cell};
}

// The first `rows` rows, padded with rows of zeros.
Tensor with_rows(const Tensor& x, int64_t rows) {
  if (rows == x.size(0)) return x;
  if (rows < x.size(0)) return x.narrow(0, 0, rows);
  return at::cat({x, x.new_zeros({rows - x.size(0), x.size(1)})});
}

std::vector<Tensor> stepped(torch::nn::GRUCellImpl& cell, const Tensor& input,
                            const std::vector<Tensor>& state) {
  return {cell.forward(input, state[0])};
}

std::vector<Tensor> stepped(torch::nn::LSTMCellImpl& cell, const Tensor& input,
                            const std::vector<Tensor>& state) {
  const auto [hidden, memory] = cell.forward(input, std::make_tuple(state[0], state[1]));
  return {hidden, memory};
}

// The state after `input`. LibTorch has its own kernels for other devices than the CPU.
template <class Cell>
std::vector<Tensor> cell_step(Cell& cell, const Tensor& input, const std::vector<Tensor>& state,
                              const Pass& pass) {
  if (!input.is_cpu()) return stepped(*cell, input, state);
  const Maps maps{cell->weight_ih, cell->weight_hh, cell->bias_ih, cell->bias_hh};
  return next_state(maps, linear(input, maps.from_input, maps.input_bias, pass), state, pass);
}

// One direction of a layer over packed rows, ordered by token, `sizes` rows per token. Returns the
// hidden states [rows, hidden] per token. Sizes must not increase.
std::vector<Tensor> steps(const torch::nn::Module& layer, bool is_lstm, bool backward,
                          const Tensor& packed, at::IntArrayRef sizes, const Pass& whole) {
  const auto named = layer.named_parameters();
  const std::string end = backward ? "_l0_reverse" : "_l0";
  const Maps maps{named["weight_ih" + end], named["weight_hh" + end], named["bias_ih" + end],
                  named["bias_hh" + end]};
  Recurrence recurrence;
  const Pass pass = whole.in(recurrence);
  const auto given = linear(packed, maps.from_input, maps.input_bias, pass).split_with_sizes(sizes);
  std::vector<Tensor> state(is_lstm ? 2 : 1,
                            packed.new_zeros({sizes.front(), maps.from_state.size(1)}));
  std::vector<Tensor> states(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t t = backward ? sizes.size() - 1 - i : i;
    // Rows that end before t, or begin there when reading backward, are zero.
    for (Tensor& each : state) each = with_rows(each, sizes[t]);
    state = next_state(maps, given[t], state, pass);
    states[t] = state[0];
  }
  return states;
}

// One layer of an encoder, with either cell.
template <class Layer>
Tensor run(Layer& layer, bool is_lstm, const Tensor& x, const Tensor& lengths, const Pass& pass) {
  const auto packed = rnn::pack_padded_sequence(x, lengths, /*batch_first=*/true,
                                                /*enforce_sorted=*/false);
  Tensor output;
  if (x.is_cpu()) {
    const Tensor& counts = packed.batch_sizes();
    const at::IntArrayRef sizes(counts.data_ptr<int64_t>(), static_cast<size_t>(counts.size(0)));
    const auto direction = [&](bool backward) {
      return at::cat(steps(*layer, is_lstm, backward, packed.data(), sizes, pass));
    };
    output = direction(false);
    if (layer->options.bidirectional()) output = at::cat({output, direction(true)}, 1);
  } else {
    output = std::get<0>(layer->forward_with_packed_input(packed)).data();
  }
  // Replaces rnn::pad_packed_sequence, which fails on an accelerator: it sorts CPU lengths by
  // indices on the device.
  const Tensor sorted = std::get<0>(at::_pad_packed_sequence(output, packed.batch_sizes(),
                                                             /*batch_first=*/true, 0.0, x.size(1)));
  return sorted.index_select(0, packed.unsorted_indices());
}

}  // namespace

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
                                           const Pass& pass) {
  std::vector<Tensor> next;
  next.reserve(state.size());
  Tensor given;
  for (size_t i = 0; i < gru_.size() + lstm_.size(); ++i) {
    const Tensor read = i == 0 ? input : attend::dropout(given, layers_.dropout, pass);
    const auto begin = state.begin() + static_cast<int64_t>(i * tensors_per_layer());
    const std::vector<Tensor> before(begin, begin + static_cast<int64_t>(tensors_per_layer()));
    const auto after = is_lstm() ? cell_step(lstm_[i], read, before, pass)
                                 : cell_step(gru_[i], read, before, pass);
    next.insert(next.end(), after.begin(), after.end());
    const Tensor& hidden = next[i * tensors_per_layer()];
    given = layers_.residual && i > 0 ? given + hidden : hidden;
  }
  return next;
}

Tensor RecurrentCell::output(const std::vector<Tensor>& state) const {
  const size_t last = state.size() - tensors_per_layer();
  Tensor sum = state[last];
  for (size_t i = 0; layers_.residual && i < last; i += tensors_per_layer()) sum = sum + state[i];
  return sum;
}

BidirectionalEncoder::BidirectionalEncoder(Cell cell, int64_t input_depth, int64_t hidden,
                                           const RecurrentLayers& layers)
    : layers_(layers) {
  if (layers.backward && hidden % 2 != 0)
    fail("a bidirectional encoder needs an even depth, got {}", hidden);
  const int64_t own = layers.backward ? hidden / 2 : hidden;
  for (int64_t i = 0; i < layers.count; ++i) {
    const int64_t depth = i == 0 ? input_depth : hidden;
    const std::string name = "layer" + std::to_string(i);
    if (cell == Cell::gru) {
      const auto options =
          torch::nn::GRUOptions(depth, own).bidirectional(layers.backward).batch_first(true);
      gru_.push_back(register_module(name, torch::nn::GRU(options)));
    } else {
      const auto options =
          torch::nn::LSTMOptions(depth, own).bidirectional(layers.backward).batch_first(true);
      lstm_.push_back(register_module(name, torch::nn::LSTM(options)));
    }
  }
}

Tensor BidirectionalEncoder::layer(size_t index, const Tensor& x, const Tensor& lengths,
                                   const Pass& pass) {
  return lstm_.empty() ? run(gru_[index], false, x, lengths, pass)
                       : run(lstm_[index], true, x, lengths, pass);
}

Tensor BidirectionalEncoder::leaving(size_t index, const Tensor& input,
                                     const Tensor& output) const {
  return layers_.residual && index > 0 ? input + output : output;
}

Tensor BidirectionalEncoder::forward(const Tensor& x, const Tensor& lengths, const Pass& pass) {
  Tensor output = layer(0, x, lengths, pass);
  for (size_t i = 1; i < gru_.size() + lstm_.size(); ++i)
    output =
        leaving(i, output, layer(i, attend::dropout(output, layers_.dropout, pass), lengths, pass));
  return output;
}

Tensor BidirectionalEncoder::unrolled(const Tensor& x, std::vector<Tensor>& states) {
  const Pass pass = {};
  const bool is_lstm = gru_.empty();
  const size_t last = gru_.size() + lstm_.size() - 1;
  const Tensor lengths = at::full({x.size(0)}, x.size(1), at::kLong);
  Tensor input = x;
  for (size_t i = 0; i < last; ++i) input = leaving(i, input, layer(i, input, lengths, pass));
  const torch::nn::Module& top = is_lstm ? static_cast<const torch::nn::Module&>(*lstm_[last])
                                         : static_cast<const torch::nn::Module&>(*gru_[last]);
  const Tensor packed = input.transpose(0, 1).flatten(0, 1);
  const std::vector<int64_t> sizes(static_cast<size_t>(x.size(1)), x.size(0));
  states = steps(top, is_lstm, false, packed, sizes, pass);
  Tensor output = at::stack(states, 1);
  if (layers_.backward)
    output = at::cat({output, at::stack(steps(top, is_lstm, true, packed, sizes, pass), 1)}, 2);
  return leaving(last, input, output);
}

}  // namespace attend
