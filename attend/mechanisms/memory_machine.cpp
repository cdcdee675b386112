#include "attend/mechanisms/memory_machine.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

#include "attend/base/error.h"
#include "attend/mechanisms/memory_addressing.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double initial_memory = 1e-6;
// Heads initially stay near their rows: before the first write, content carries no information.
constexpr double initial_gate = -4;
// Wider than variance-preserving, which makes heads move differently for different inputs from the
// start.
constexpr double initial_gain = 1.4;

int64_t shifts(const MemoryMachineConfig& config) { return 2 * config.farthest_shift + 1; }
int64_t heads(const MemoryMachineConfig& config) { return config.read_heads + config.write_heads; }

// Controls of a head in their order: key, strength, gate, sharpness, shifts.
int64_t controls_of_head(const MemoryMachineConfig& config) {
  return config.width + 3 + shifts(config);
}

void check(const MemoryMachineConfig& config) {
  for (const auto& [value, name] :
       {std::pair(config.inputs, "inputs"), std::pair(config.outputs, "outputs"),
        std::pair(config.hidden, "hidden"), std::pair(config.rows, "rows"),
        std::pair(config.width, "width"), std::pair(config.read_heads, "read_heads"),
        std::pair(config.write_heads, "write_heads")})
    if (value < 1) fail("[memory machine] {} is {}; it must be 1 or more", name, value);
  if (config.farthest_shift < 0 || shifts(config) > config.rows)
    fail("[memory machine] farthest_shift is {}; over {} rows it must be from 0 to {}",
         config.farthest_shift, config.rows, (config.rows - 1) / 2);
}

}  // namespace

MemoryMachine::MemoryMachine(const MemoryMachineConfig& config) : config_(config) {
  check(config);
  const int64_t seen = config.inputs + config.read_heads * config.width;
  if (config.controller == Controller::feed_forward)
    feed_forward_ = register_module("controller", Linear(seen, config.hidden));
  else
    recurrent_ = register_module(
        "controller",
        std::make_shared<RecurrentCell>(
            config.controller == Controller::gru ? Cell::gru : Cell::lstm, seen, config.hidden));
  addressing_ = register_module("addressing",
                                Linear(config.hidden, heads(config) * controls_of_head(config)));
  writing_ =
      register_module("writing", Linear(config.hidden, config.write_heads * 2 * config.width));
  output_ = register_module(
      "output", Linear(config.hidden + config.read_heads * config.width, config.outputs));
  first_reads_ =
      register_parameter("first_reads", 0.05 * torch::randn({config.read_heads, config.width}));
  for (const auto& layer : {addressing_, writing_}) {
    torch::nn::init::xavier_uniform_(layer->weight, initial_gain);
    torch::nn::init::zeros_(layer->bias);
  }
  at::NoGradGuard no_gradient;
  addressing_->bias.view({heads(config), -1}).select(1, config.width + 1).fill_(initial_gate);
}

MemoryMachineState MemoryMachine::start(int64_t batch) const {
  const auto options = output_->weight.options().requires_grad(false);
  MemoryMachineState state;
  state.memory = torch::full({batch, config_.rows, config_.width}, initial_memory, options);
  state.weights = torch::zeros({batch, heads(config_), config_.rows}, options);
  state.weights.select(2, 0).fill_(1);
  state.reads = first_reads_.expand({batch, -1, -1});
  if (recurrent_)
    state.controller.assign(static_cast<size_t>(recurrent_->state_size()),
                            torch::zeros({batch, config_.hidden}, options));
  return state;
}

Tensor MemoryMachine::address(const Tensor& controls, const MemoryMachineState& state) const {
  const int64_t width = config_.width;
  const Tensor keys = controls.narrow(2, 0, width).tanh();
  const Tensor strengths = at::softplus(controls.select(2, width));
  const Tensor gates = controls.select(2, width + 1).sigmoid();
  const Tensor sharpness = 1 + at::softplus(controls.select(2, width + 2));
  const Tensor moves = controls.narrow(2, width + 3, shifts(config_)).softmax(-1);
  const Tensor content = address_by_content(state.memory, keys, strengths);
  return sharpen_weights(shift_weights(interpolate_weights(content, state.weights, gates), moves),
                         sharpness);
}

std::pair<Tensor, MemoryMachineState> MemoryMachine::advance(const Tensor& input,
                                                             const MemoryMachineState& state,
                                                             const Pass& pass) {
  const int64_t batch = input.size(0), width = config_.width;
  const Tensor seen = at::cat({input, state.reads.flatten(1)}, 1);
  MemoryMachineState next;
  if (recurrent_) next.controller = recurrent_->forward(seen, state.controller, pass);
  const Tensor hidden = recurrent_ ? next.controller[0] : feed_forward_->forward(seen, pass).tanh();
  next.weights =
      address(addressing_->forward(hidden, pass).view({batch, heads(config_), -1}), state);
  const Tensor written =
      writing_->forward(hidden, pass).view({batch, config_.write_heads, 2 * width});
  next.memory =
      erase_and_add(state.memory, next.weights.narrow(1, config_.read_heads, config_.write_heads),
                    written.narrow(2, 0, width).sigmoid(), written.narrow(2, width, width).tanh());
  next.reads = read_rows(next.memory, next.weights.narrow(1, 0, config_.read_heads));
  return {at::cat({hidden, next.reads.flatten(1)}, 1), std::move(next)};
}

std::pair<Tensor, MemoryMachineState> MemoryMachine::step(const Tensor& input,
                                                          const MemoryMachineState& state,
                                                          const Pass& pass) {
  auto [features, next] = advance(input, state, pass);
  return {output_->forward(features, pass), std::move(next)};
}

Tensor MemoryMachine::forward(const Tensor& inputs, const Pass& pass) {
  if (inputs.dim() != 3 || inputs.size(1) == 0 || inputs.size(2) != config_.inputs)
    fail("[memory machine] inputs have shape [{}]; they must be [B, T, {}], T 1 or more",
         fmt::join(inputs.sizes(), ", "), config_.inputs);
  MemoryMachineState state = start(inputs.size(0));
  std::vector<Tensor> features;
  features.reserve(static_cast<size_t>(inputs.size(1)));
  Recurrence recurrence;
  const Pass steps = pass.in(recurrence);
  for (const Tensor& input : inputs.unbind(1)) {
    auto [step_features, next] = advance(input, state, steps);
    features.push_back(step_features);
    state = std::move(next);
  }
  return output_->forward(at::stack(features, 1), steps);
}

}  // namespace attend
