#include "attend/decode/packed_recurrence.h"

#include <algorithm>
#include <cmath>

#include "attend/decode/packed_tensors-inl.h"
#include "attend/kernels/causal_convolution.h"
#include "attend/kernels/recurrence.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t taps = RecurrenceLayer::convolution_width;

float softplus(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); }
float logistic(float x) { return 1 / (1 + std::exp(-x)); }

std::vector<float> floats(const Tensor& tensor) {
  const Tensor plain = contiguous_numbers(tensor.detach().to(at::kFloat));
  return {pointer_of<const float>(plain), pointer_of<const float>(plain) + plain.numel()};
}

void select(std::vector<float>& numbers, const int64_t* rows, int64_t wanted, int64_t count) {
  if (numbers.empty()) return;
  const int64_t each = std::ssize(numbers) / count;
  std::vector<float> moved(static_cast<size_t>(wanted * each));
  for (int64_t r = 0; r < wanted; ++r)
    std::copy_n(numbers.data() + rows[r] * each, each, moved.data() + r * each);
  numbers = std::move(moved);
}

}  // namespace

void PackedRecurrence::State::reorder(const int64_t* rows, int64_t rows_count, int64_t count) {
  select(states, rows, rows_count, count);
  select(inputs, rows, rows_count, count);
}

void PackedRecurrence::State::append(State& other) {
  states.insert(states.end(), other.states.begin(), other.states.end());
  inputs.insert(inputs.end(), other.inputs.begin(), other.inputs.end());
}

PackedRecurrence::PackedRecurrence(const RecurrenceLayerConfig& config, const Parameters& all,
                                   const std::string& name, WeightType weights)
    : config_(config), norm_(floats(all[name + ".norm"])) {
  const RecurrenceRow& row = *config.row;
  std::vector<Tensor> maps, biases;
  int64_t columns = 0;
  const auto add = [&](const char* part) {
    const int64_t first = columns;
    maps.push_back(all[name + part + ".weight"].detach());
    biases.push_back(all[name + part + ".bias"].detach());
    columns += maps.back().size(0);
    return first;
  };
  add(".projection");
  gate_column_ = add(".gate");
  if (row.decay == DecayKind::token || row.decay == DecayKind::row) decay_column_ = add(".decay");
  if (row.strength && !row.step_sizes) strength_column_ = add(".strength");
  in_ = packed(at::cat(maps), at::cat(biases), weights);
  output_ = packed(all[name + ".output.weight"], all[name + ".output.bias"], weights);
  if (row.decay == DecayKind::token) rates_ = floats(all[name + ".rate"].detach().exp());
  if (row.decay == DecayKind::head)
    rates_ = floats(RecurrenceLayer::constant_decays(config.heads, at::kFloat));
  if (row.convolution) convolution_ = floats(all[name + ".convolution"]);
}

PackedRecurrence::State PackedRecurrence::start(int64_t count) const {
  State state;
  state.states.assign(static_cast<size_t>(count * config_.depth * head_depth()), 0.0F);
  if (!convolution_.empty())
    state.inputs.assign(static_cast<size_t>(count * (taps - 1) * 3 * config_.depth), 0.0F);
  return state;
}

void PackedRecurrence::set_decays(int64_t rows, Scratch& scratch) const {
  const RecurrenceRow& row = *config_.row;
  const int64_t heads = config_.heads, wide = in_.padded_columns();
  const int64_t numbers = row.decay == DecayKind::token ? heads
                          : row.decay == DecayKind::row ? config_.depth
                                                        : 0;
  float* decays = with_room(scratch.decays, rows * numbers);
  float* strengths = with_room(scratch.strengths, row.strength ? rows * heads : 0);
  for (int64_t r = 0; r < rows; ++r) {
    const float* own = scratch.mapped.data() + r * wide;
    for (int64_t i = 0; i < numbers; ++i) {
      const float x = own[decay_column_ + i];
      decays[r * numbers + i] =
          row.decay == DecayKind::token
              ? -rates_[static_cast<size_t>(i)] * softplus(x)
              : -softplus(-x) / static_cast<float>(RecurrenceLayer::row_decay_divisor);
    }
    for (int64_t h = 0; row.strength && h < heads; ++h)
      strengths[r * heads + h] =
          row.step_sizes ? softplus(own[decay_column_ + h]) : logistic(own[strength_column_ + h]);
  }
}

PackedRecurrence::Vectors PackedRecurrence::convolved(int64_t count, int64_t positions,
                                                      State& state, Scratch& scratch) const {
  const int64_t wide = in_.padded_columns(), channels = 3 * config_.depth;
  if (convolution_.empty()) return {scratch.mapped.data(), wide};
  float* output = with_room(scratch.convolved, count * positions * channels);
  float* last = with_room(scratch.inputs, std::ssize(state.inputs));
  kernels::causal_convolution<float>({.batch = count,
                                      .tokens = positions,
                                      .channels = channels,
                                      .width = taps,
                                      .input = scratch.mapped.data(),
                                      .batch_stride = positions * wide,
                                      .token_stride = wide,
                                      .weight = convolution_.data(),
                                      .state = state.inputs.data(),
                                      .silu = true},
                                     output, last, /*threads=*/1);
  std::copy_n(last, state.inputs.size(), state.inputs.data());
  return {output, channels};
}

void PackedRecurrence::gate(int64_t rows, int64_t stride, Scratch& scratch) const {
  const int64_t depth = head_depth(), wide = in_.padded_columns();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t h = 0; h < config_.heads; ++h) {
      float* context = scratch.context.data() + r * stride + h * depth;
      const float* gates = scratch.mapped.data() + r * wide + gate_column_ + h * depth;
      float squares = 0;
      for (int64_t a = 0; a < depth; ++a) squares += context[a] * context[a];
      const float scale =
          1 / std::sqrt(squares / static_cast<float>(depth) + static_cast<float>(config_.epsilon));
      for (int64_t a = 0; a < depth; ++a) {
        const float open = logistic(gates[a]) * (config_.row->sigmoid_gate ? 1 : gates[a]);
        context[a] *= scale * norm_[static_cast<size_t>(a)] * open;
      }
    }
}

void PackedRecurrence::step(const float* in, int64_t stride, int64_t positions, State& state,
                            Scratch& scratch, float* x) const {
  const RecurrenceRow& row = *config_.row;
  const int64_t heads = config_.heads, depth = head_depth();
  const int64_t count = std::ssize(state.states) / (config_.depth * depth);
  const int64_t rows = count * positions;
  kernels::packed_products({.rows = rows,
                            .matrix = &in_,
                            .a = in,
                            .a_stride = stride,
                            .out = with_room(scratch.mapped, rows * in_.padded_columns()),
                            .out_stride = in_.padded_columns()});
  set_decays(rows, scratch);
  const Vectors vectors = convolved(count, positions, state, scratch);
  const auto part = [&](int64_t which) {
    return kernels::View<const float>{vectors.data + which * config_.depth,
                                      positions * vectors.stride, depth, vectors.stride};
  };
  kernels::Recurrence<float> problem{.shape = {count, heads, heads, positions, depth, depth,
                                               row.decay == DecayKind::none  ? 0
                                               : row.decay == DecayKind::row ? depth
                                                                             : 1},
                                     .query = part(0),
                                     .key = part(1),
                                     .value = part(2),
                                     .decay = {},
                                     .strength = {},
                                     .initial = state.states.data(),
                                     .delta = row.delta,
                                     .scale = 1 / std::sqrt(static_cast<double>(depth)),
                                     .normalise = row.unit_keys};
  if (row.decay == DecayKind::head) problem.decay = {rates_.data(), 0, 1, 0};
  if (row.decay == DecayKind::token)
    problem.decay = {scratch.decays.data(), positions * heads, 1, heads};
  if (row.decay == DecayKind::row)
    problem.decay = {scratch.decays.data(), positions * config_.depth, depth, config_.depth};
  if (row.strength) problem.strength = {scratch.strengths.data(), positions * heads, 1, heads};
  // Zeros after the depth: the output's product reads whole rows.
  scratch.context.assign(static_cast<size_t>(rows * stride), 0.0F);
  kernels::recurrence_forward<float>(
      problem,
      {{scratch.context.data(), positions * stride, depth, stride}, state.states.data(), nullptr},
      /*threads=*/1);
  gate(rows, stride, scratch);
  kernels::packed_products({.rows = rows,
                            .matrix = &output_,
                            .a = scratch.context.data(),
                            .a_stride = stride,
                            .accumulate = true,
                            .out = x,
                            .out_stride = stride});
}

}  // namespace attend
