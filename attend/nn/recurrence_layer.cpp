#include "attend/nn/recurrence_layer.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

#include <cmath>

#include "attend/base/error.h"
#include "attend/nn/feed_forward.h"
#include "attend/nn/multi_head_state.h"
#include "attend/nn/shared_sequence.h"
#include "attend/ops/causal_convolution.h"
#include "attend/ops/scopes.h"
#include "attend/parallel/distributed_recurrence.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double initial_bonus = 0.5;      // the current token counts half at first
constexpr int64_t longest_watched = 2048;  // a watched recurrence has all T x T weights

// Steps of 0.001 to 0.1, as in Mamba: the softplus of the result.
Tensor drawn_steps(int64_t heads) {
  const Tensor steps = at::exp(at::rand({heads}) * std::log(100.0) + std::log(1e-3));
  return steps + at::log(-at::expm1(-steps));
}

// x [B, own positions, C] convolved over the whole sequence.
Tensor convolved_runs(Communicator& world, const Tensor& x, const Tensor& weight, const Runs& runs,
                      const Sharding& sharding) {
  const std::vector<Tensor> before =
      rows_before_runs(world, x, RecurrenceLayer::convolution_width - 1, sharding);
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    parts.push_back(causal_convolution(x.narrow(1, first, runs[i].count), weight, {}, before[i],
                                       /*silu=*/true)
                        .output);
    first += runs[i].count;
  }
  return at::cat(parts, 1);
}

}  // namespace

void RecurrenceLayerState::reorder(const Tensor& rows) {
  state = selected_rows(state, rows);
  inputs = selected_rows(inputs, rows);
  map = selected_rows(map, rows);
  values = selected_rows(values, rows);
}

RecurrenceLayer::RecurrenceLayer(const RecurrenceLayerConfig& config) : config_(config) {
  const int64_t depth = config.depth, heads = config.heads;
  const RecurrenceRow& row = *config.row;
  if (heads < 1 || depth < 1 || depth % heads != 0)
    fail("[recurrence layer] depth {} does not divide among {} heads", depth, heads);
  if (config.both_ways && heads % 2 != 0)
    fail("[recurrence layer] got {} heads, and half of them read from the end; take an even number",
         heads);
  projection_ = register_module("projection", xavier_linear(depth, 3 * depth));
  for (const int64_t part : {0, 1, 2})
    torch::nn::init::xavier_uniform_(projection_->weight.narrow(0, part * depth, depth));
  if (row.convolution) {
    const double bound = 1 / std::sqrt(static_cast<double>(convolution_width));
    convolution_ = register_parameter(
        "convolution", (torch::rand({3 * depth, convolution_width}) * 2 - 1) * bound);
  }
  if (row.decay == DecayKind::token) {
    decay_ = register_module("decay", xavier_linear(depth, heads));
    const at::NoGradGuard no_gradient;
    decay_->bias.copy_(drawn_steps(heads));
    rate_ = register_parameter("rate", (torch::rand({heads}) * 15 + 1).log());
  }
  if (row.decay == DecayKind::row) decay_ = register_module("decay", xavier_linear(depth, depth));
  if (row.strength && !row.step_sizes)
    strength_ = register_module("strength", xavier_linear(depth, heads));
  if (row.bonus)
    bonus_ = register_parameter("bonus", torch::full({heads, depth / heads}, initial_bonus));
  norm_ = register_parameter("norm", torch::ones({depth / heads}));
  gate_ = register_module("gate", xavier_linear(depth, depth));
  output_ = register_module("output", xavier_linear(depth, depth));
}

RecurrenceLayer::Heads RecurrenceLayer::heads_of(const Tensor& in) {
  const Tensor parts = in.permute({2, 0, 3, 1, 4});
  return {parts[0], parts[1], parts[2]};
}

Tensor RecurrenceLayer::turned(const Tensor& x, int64_t head_axis) const {
  if (!config_.both_ways) return x;
  const int64_t half = config_.heads / 2;
  return at::cat({x.narrow(head_axis, 0, half), x.narrow(head_axis, half, half).flip(1)},
                 head_axis);
}

Tensor RecurrenceLayer::constant_decays(int64_t heads, const at::TensorOptions& options) {
  return at::log1p(-at::exp2(-5 - at::arange(heads, at::kDouble))).to(options);
}

RecurrenceSpec RecurrenceLayer::spec_of(const Tensor& x, const Pass& pass) {
  const RecurrenceRow& row = *config_.row;
  RecurrenceSpec spec;
  spec.delta = row.delta;
  spec.l2_normalise = row.unit_keys;
  spec.bonus = bonus_;
  const auto in_order = [&](const Tensor& numbers) { return turned(numbers, 2).transpose(1, 2); };
  // LibTorch's softplus computes the last numbers of a tensor with different bits.
  if (row.decay == DecayKind::head) {
    // Both directions have the same decays.
    const int64_t directions = config_.both_ways ? 2 : 1;
    spec.decay = constant_decays(config_.heads / directions, x.options()).repeat({directions});
  }
  if (row.decay == DecayKind::token) {
    const Tensor steps = in_order(at::log_sigmoid(-decay_->forward(x, pass)));
    spec.decay = rate_.exp().unsqueeze(1) * steps;
    if (row.step_sizes) spec.strength = -steps;
  }
  if (row.decay == DecayKind::row)
    spec.decay = in_order(at::log_sigmoid(decay_->forward(x, pass))
                              .unflatten(2, {config_.heads, x.size(2) / config_.heads})) /
                 row_decay_divisor;
  if (strength_) spec.strength = in_order(at::sigmoid(strength_->forward(x, pass)));
  return spec;
}

bool RecurrenceLayer::can_be_watched(const RecurrenceLayerState& state, int64_t tokens) {
  const int64_t before = state.values.defined() ? state.values.size(2) : 0;
  return !state.state.defined() && before + tokens <= longest_watched;
}

// The recurrence as attention: the weights w_ij = scale q_i . (product of transitions) k_j b_j are
// the outputs for values that are rows of the identity.
Tensor RecurrenceLayer::watched(const Heads& in, RecurrenceSpec spec, RecurrenceLayerState& state,
                                const Pass& pass) const {
  const int64_t batch = in.value.size(0), heads = config_.heads, tokens = in.value.size(2);
  const int64_t before = state.values.defined() ? state.values.size(2) : 0;
  const Tensor identity = at::eye(before + tokens, in.value.options());
  if (before > 0) spec.initial = at::constant_pad_nd(state.map, {0, tokens});
  auto [weights, map] = linear_recurrence(
      in.query, in.key, identity.slice(0, before).expand({batch, heads, -1, -1}), spec);
  state.map = map;
  state.values = before > 0 ? at::cat({state.values, in.value}, 2) : in.value;
  const int64_t together = config_.both_ways ? heads / 2 : heads;
  std::vector<Tensor> contexts;
  for (int64_t first = 0; first < heads; first += together) {
    const bool turns = first > 0;
    const auto own = [&](const Tensor& x, at::IntArrayRef axes) {
      const Tensor part = x.narrow(1, first, together);
      return turns ? part.flip(axes) : part;
    };
    const AttentionSpec read{.scope = turns ? window(0, tokens) : causal(), .align = Align::last};
    const int64_t depth = in.value.size(3);
    const Tensor context =
        pass.apply_weights(own(weights, {2, 3}), own(state.values, {2}), read,
                           output_->weight.narrow(1, first * depth, together * depth));
    contexts.push_back(turns ? context.flip(2) : context);
  }
  return contexts.size() == 1 ? contexts[0] : at::cat(contexts, 1);
}

Tensor RecurrenceLayer::read(const Heads& in, RecurrenceSpec spec, RecurrenceLayerState& state,
                             const Pass& pass) const {
  if (pass.watch != nullptr && can_be_watched(state, in.value.size(2)))
    return watched(in, std::move(spec), state, pass);
  if (state.map.defined()) {
    state.state = at::matmul(state.map, state.values);
    state.map = state.values = Tensor();
  }
  spec.initial = state.state;
  auto [output, last] = linear_recurrence(in.query, in.key, in.value, spec);
  state.state = last;
  return output;
}

RecurrenceLayer::Heads RecurrenceLayer::convolved(Tensor in, RecurrenceLayerState& state) const {
  if (convolution_.defined()) {
    const std::vector<int64_t> sizes = in.sizes().vec();
    auto [output, inputs] =
        causal_convolution(in.flatten(2), convolution_, {}, state.inputs, /*silu=*/true);
    in = output.view(sizes);
    state.inputs = inputs;
  }
  return heads_of(in);
}

Tensor RecurrenceLayer::shared_contexts(const Tensor& in, const RecurrenceSpec& spec,
                                        const Pass& pass) const {
  const int64_t heads = config_.heads, together = config_.both_ways ? heads / 2 : heads;
  Communicator& world = pass.sequence->world();
  std::vector<Tensor> contexts;
  for (int64_t first = 0; first < heads; first += together) {
    Sharding sharding = pass.sequence->attended(pass.site).keys;
    if (first > 0) sharding = mirrored(sharding);
    const auto own = [&](const Tensor& x, int64_t axis) {
      return x.defined() ? x.narrow(axis, first, together) : x;
    };
    Tensor part = own(in, 3);
    if (convolution_.defined()) {
      const Tensor weight = own(convolution_.unflatten(0, {3, heads, -1}), 1).flatten(0, 2);
      const Runs& runs = sharding[static_cast<size_t>(world.rank())];
      part = convolved_runs(world, part.flatten(2), weight, runs, sharding).view(part.sizes());
    }
    RecurrenceSpec mine = spec;
    if (spec.decay.defined()) mine.decay = own(spec.decay, spec.decay.dim() == 1 ? 0 : 1);
    mine.strength = own(spec.strength, 1);
    mine.bonus = own(spec.bonus, 0);
    const Heads parts = heads_of(part);
    contexts.push_back(
        distributed_recurrence(world, parts.query, parts.key, parts.value, mine, sharding).output);
  }
  return contexts.size() == 1 ? contexts[0] : at::cat(contexts, 1);
}

Tensor RecurrenceLayer::computed(const Tensor& x, const Tensor& present,
                                 RecurrenceLayerState& state, const Pass& pass) {
  const int64_t heads = config_.heads, depth = config_.depth / heads;
  Tensor in = projection_->forward(x, pass);
  if (present.defined()) in = in.masked_fill(present.logical_not().unsqueeze(2), 0);
  in = turned(in.unflatten(2, {3, heads, depth}), 3);
  const RecurrenceSpec spec = spec_of(x, pass);
  Tensor contexts = pass.sequence != nullptr ? shared_contexts(in, spec, pass)
                                             : read(convolved(in, state), spec, state, pass);
  contexts = turned(contexts.transpose(1, 2), 2);  // [B, T, H, depth]
  const Tensor scale = (contexts.square().mean(-1, /*keepdim=*/true) + config_.epsilon).rsqrt();
  const Tensor gate = gate_->forward(x, pass);
  const Tensor open = config_.row->sigmoid_gate ? at::sigmoid(gate)
                                                : activated(gate, HiddenActivation::swish, pass);
  return output_->forward((contexts * scale * norm_).flatten(2) * open, pass);
}

Tensor RecurrenceLayer::forward(const Tensor& x, const Tensor& present, const Pass& pass) {
  RecurrenceLayerState state;
  return computed(x, present, state, pass);
}

Tensor RecurrenceLayer::step(const Tensor& x, RecurrenceLayerState& state, const Pass& pass) {
  if (config_.both_ways)
    fail("[recurrence layer] half of the heads read from the end; take forward");
  return computed(x, {}, state, pass);
}

}  // namespace attend
