#include "attend/mechanisms/memory_machine.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include <cmath>

#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace memory_machine_test {

using at::Tensor;

constexpr int64_t rows = 7, width = 3, hidden = 5;
// Some steps of sums of some dozens of products of numbers near 1.
constexpr double tolerance = 1e-12;

MemoryMachineConfig config_of(Controller controller) {
  return {.inputs = 2,
          .outputs = 4,
          .controller = controller,
          .hidden = hidden,
          .rows = rows,
          .width = width,
          .read_heads = 2,
          .write_heads = 2};
}

std::unique_ptr<MemoryMachine> machine_of(Controller controller) {
  torch::manual_seed(1);
  auto machine = std::make_unique<MemoryMachine>(config_of(controller));
  machine->to(torch::kDouble);
  // Larger than initialised, so that every part of a step matters.
  at::NoGradGuard no_gradient;
  for (Tensor& parameter : machine->parameters()) parameter += 0.5 * torch::randn_like(parameter);
  return machine;
}

// One head of one batch entry on the memory [rows, width] (Graves et al. 2014, eq. 5-9). Order of
// `controls`: key, strength, gate, sharpness, shifts.
Tensor addressed(const Tensor& controls, const Tensor& memory, const Tensor& previous) {
  const Tensor key = controls.slice(0, 0, width).tanh();
  const auto number = [&](int64_t i) { return controls[width + i].item<double>(); };
  const double strength = std::log1p(std::exp(number(0))), gate = 1 / (1 + std::exp(-number(1)));
  const double sharpness = 1 + std::log1p(std::exp(number(2)));
  Tensor content = torch::zeros({rows}, torch::kDouble);
  for (int64_t i = 0; i < rows; ++i)
    content[i] = torch::exp(strength * (key * memory[i]).sum() / (key.norm() * memory[i].norm()));
  const Tensor gated = gate * content / content.sum() + (1 - gate) * previous;
  const Tensor shifts = controls.slice(0, width + 3).softmax(0);
  Tensor moved = torch::zeros({rows}, torch::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t by = -1; by <= 1; ++by) moved[(i + by + rows) % rows] += gated[i] * shifts[by + 1];
  }
  const Tensor powers = moved.pow(sharpness);
  return powers / powers.sum();
}

// Outputs for one sequence [T, inputs] with a feed-forward controller.
Tensor by_hand(const MemoryMachine& machine, const Tensor& sequence) {
  const auto p = machine.named_parameters();
  const auto linear = [&](const std::string& name, const Tensor& x) {
    return p[name + ".weight"].mv(x) + p[name + ".bias"];
  };
  Tensor memory = torch::full({rows, width}, 1e-6, torch::kDouble), reads = p["first_reads"];
  std::vector<Tensor> weights(4, torch::zeros({rows}, torch::kDouble)), outputs;
  for (Tensor& one : weights) one[0] = 1;
  for (int64_t t = 0; t < sequence.size(0); ++t) {
    const Tensor controller =
        linear("controller", torch::cat({sequence[t], reads.flatten()})).tanh();
    const Tensor controls = linear("addressing", controller).view({4, -1});
    for (int64_t h = 0; h < 4; ++h) {
      const auto head = static_cast<size_t>(h);
      weights[head] = addressed(controls[h], memory, weights[head]);
    }
    const Tensor written = linear("writing", controller).view({2, 2, width});
    Tensor next = memory.clone();
    for (int64_t h = 0; h < 2; ++h)
      next =
          next * (1 - torch::outer(weights[static_cast<size_t>(2 + h)], written[h][0].sigmoid()));
    for (int64_t h = 0; h < 2; ++h)
      next = next + torch::outer(weights[static_cast<size_t>(2 + h)], written[h][1].tanh());
    memory = next;
    reads = torch::stack({memory.t().mv(weights[0]), memory.t().mv(weights[1])});
    outputs.push_back(linear("output", torch::cat({controller, reads.flatten()})));
  }
  return torch::stack(outputs);
}

TEST(MemoryMachine, IsTheMachineOfThePaper) {
  at::NoGradGuard no_gradient;
  const auto machine = machine_of(Controller::feed_forward);
  const Tensor inputs = torch::randn({3, 6, 2}, torch::kDouble);
  const Tensor outputs = machine->forward(inputs);
  for (int64_t b = 0; b < 3; ++b)
    EXPECT_TRUE(torch::allclose(outputs[b], by_hand(*machine, inputs[b]), tolerance, tolerance));
}

class EveryController : public testing::TestWithParam<Controller> {};

INSTANTIATE_TEST_SUITE_P(Controllers, EveryController,
                         testing::Values(Controller::lstm, Controller::gru,
                                         Controller::feed_forward),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(EveryController, StepsAsItRunsOverASequence) {
  const auto machine = machine_of(GetParam());
  const Tensor inputs = torch::randn({2, 5, 2}, torch::kDouble);
  const Tensor outputs = machine->forward(inputs);
  MemoryMachineState state = machine->start(2);
  for (int64_t t = 0; t < 5; ++t) {
    const auto [output, next] = machine->step(inputs.select(1, t), state);
    EXPECT_TRUE(torch::allclose(output, outputs.select(1, t), tolerance, tolerance));
    EXPECT_TRUE(
        torch::allclose(next.weights.sum(2), torch::ones({2, 4}, torch::kDouble), 0, 1e-12));
    state = next;
  }
}

TEST_P(EveryController, HasTheGradientsOfItsDifferences) {
  const auto machine = machine_of(GetParam());
  const Tensor probe = torch::randn({2, 3, 4}, torch::kDouble);
  const auto run = [&](const Tensor& x) { return (machine->forward(x) * probe).sum(); };
  std::vector<std::string> names = {"inputs"};
  reference::Tensors inputs = {torch::randn({2, 3, 2}, torch::kDouble)};
  reference::Tensors variables = reference::leaves(inputs);
  for (const auto& item : machine->named_parameters()) {
    names.push_back(item.key());
    inputs.push_back(item.value().detach().clone());
    variables.push_back(item.value());
  }
  const auto derivatives = reference::gradients(run(variables[0]), variables, false);
  at::NoGradGuard no_gradient;
  const auto objective = [&](const reference::Tensors& values) {
    size_t next = 1;
    for (Tensor& parameter : machine->parameters()) parameter.copy_(values[next++]);
    return run(values[0]);
  };
  reference::expect_central_differences(objective, inputs, derivatives, names);
}

// Task: repeat one to three random vectors of three bits after a delimiter.
TEST(MemoryMachine, LearnsToCopy) {
  torch::manual_seed(2);
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  MemoryMachine machine({.inputs = 4,
                         .outputs = 3,
                         .controller = Controller::feed_forward,
                         .hidden = 32,
                         .rows = 8,
                         .width = 8});
  torch::optim::Adam optimiser(machine.parameters(), 1e-2);
  double last = 0;
  constexpr int batches = 400, counted = 50;
  for (int i = 0; i < batches; ++i) {
    const int64_t length = 1 + i % 3;
    const Tensor targets = torch::randint(0, 2, {16, length, 3}, generator).to(torch::kFloat);
    const Tensor inputs = torch::zeros({16, 2 * length + 1, 4});
    inputs.slice(1, 0, length).slice(2, 0, 3).copy_(targets);
    inputs.select(1, length).select(1, 3).fill_(1);
    optimiser.zero_grad();
    const Tensor loss =
        at::binary_cross_entropy_with_logits(machine.forward(inputs).slice(1, length + 1), targets);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(machine.parameters(), 10);
    optimiser.step();
    if (i >= batches - counted) last += loss.item<double>() / counted;
  }
  // Guessing costs log 2 = 0.69 per bit; knowing only the last vector, as without memory, 0.36.
  EXPECT_LT(last, 0.2);
}

TEST(MemoryMachine, RefusesWhatDoesNotFit) {
  MemoryMachineConfig narrow = config_of(Controller::lstm), still = narrow, far = narrow;
  narrow.width = 0;
  still.farthest_shift = -1;
  far.farthest_shift = 4;
  expect_errors({
      {[&] { MemoryMachine machine(narrow); }, "width is 0; it must be 1 or more"},
      {[&] { MemoryMachine machine(still); }, "farthest_shift is -1"},
      {[&] { MemoryMachine machine(far); }, "over 7 rows it must be from 0 to 3"},
      {[] {
         MemoryMachine(config_of(Controller::lstm)).forward(torch::zeros({2, 3, 5}));
       },
       "inputs have shape [2, 3, 5]; they must be [B, T, 2]"},
  });
}

}  // namespace memory_machine_test
}  // namespace attend
