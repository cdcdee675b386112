#include "attend/nn/recurrent_gates.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "attend/kernels/recurrent_gates.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The kernel reads whole vectors of float32.
bool takes(const Tensor& state) {
  return state.is_cpu() && state.scalar_type() == at::kFloat && state.size(1) % 16 == 0 &&
         state.numel() > 0;
}

Tensor composed_gru(const Tensor& y, const Tensor& u, const Tensor& h) {
  const auto from_input = y.chunk(3, 1), from_state = u.chunk(3, 1);
  const Tensor r = at::sigmoid(from_input[0] + from_state[0]);
  const Tensor z = at::sigmoid(from_input[1] + from_state[1]);
  const Tensor n = at::tanh(from_input[2] + r * from_state[2]);
  return n + z * (h - n);
}

variable_list composed_lstm(const Tensor& y, const Tensor& c) {
  const auto gates = y.chunk(4, 1);
  const Tensor next = at::sigmoid(gates[1]) * c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
  return {at::sigmoid(gates[3]) * at::tanh(next), next};
}

// Gradients that can be differentiated again: those of the composed `outputs` of `inputs`.
variable_list twin_gradients(const variable_list& outputs, const variable_list& inputs,
                             const variable_list& upstream) {
  variable_list reached, wanted, seeds;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (upstream[i].defined() && outputs[i].requires_grad()) {
      reached.push_back(outputs[i]);
      seeds.push_back(upstream[i]);
    }
  for (const Tensor& input : inputs)
    if (input.requires_grad()) wanted.push_back(input);
  const variable_list found = torch::autograd::grad(reached, wanted, seeds, /*retain_graph=*/true,
                                                    /*create_graph=*/true, /*allow_unused=*/true);
  variable_list gradients;
  size_t next = 0;
  for (const Tensor& input : inputs)
    gradients.push_back(input.requires_grad() ? found[next++] : Tensor());
  return gradients;
}

struct GruGates : torch::autograd::Function<GruGates> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& u,
                        const Tensor& h) {
    const Tensor from_input = y.contiguous(), from_state = u.contiguous();
    context->save_for_backward({y, u, h});
    Tensor next = h.clone(at::MemoryFormat::Contiguous);
    kernels::recurrent_gates({.rows = h.size(0),
                              .hidden = h.size(1),
                              .from_input = from_input.data_ptr<float>(),
                              .from_state = from_state.data_ptr<float>(),
                              .stride = 3 * h.size(1),
                              .state = next.data_ptr<float>()});
    return next;
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    if (at::GradMode::is_enabled())
      return twin_gradients({composed_gru(saved[0], saved[1], saved[2])}, saved, upstream);
    const Tensor y = saved[0].contiguous(), u = saved[1].contiguous(), h = saved[2].contiguous();
    const Tensor slope = upstream[0].contiguous();
    const Tensor from_input = at::empty_like(y), from_state = at::empty_like(u);
    const Tensor before = at::empty_like(h);
    kernels::recurrent_gates_gradient({.rows = h.size(0),
                                       .hidden = h.size(1),
                                       .from_input = y.data_ptr<float>(),
                                       .from_state = u.data_ptr<float>(),
                                       .state = h.data_ptr<float>(),
                                       .grad_state = slope.data_ptr<float>(),
                                       .grad_input = from_input.data_ptr<float>(),
                                       .grad_product = from_state.data_ptr<float>(),
                                       .grad_before = before.data_ptr<float>()});
    return {from_input, from_state, before};
  }
};

struct LstmGates : torch::autograd::Function<LstmGates> {
  static variable_list forward(AutogradContext* context, const Tensor& y, const Tensor& c) {
    const Tensor from_input = y.contiguous();
    context->save_for_backward({y, c});
    Tensor hidden = at::empty(c.sizes(), c.options());
    Tensor next = c.clone(at::MemoryFormat::Contiguous);
    kernels::recurrent_gates({.rows = c.size(0),
                              .hidden = c.size(1),
                              .from_input = from_input.data_ptr<float>(),
                              .stride = 4 * c.size(1),
                              .state = hidden.data_ptr<float>(),
                              .cell = next.data_ptr<float>()});
    return {hidden, next};
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    if (at::GradMode::is_enabled())
      return twin_gradients(composed_lstm(saved[0], saved[1]), saved, upstream);
    const Tensor y = saved[0].contiguous(), c = saved[1].contiguous();
    const Tensor of_hidden = upstream[0].contiguous(), of_cell = upstream[1].contiguous();
    const Tensor from_input = at::empty_like(y), before = at::empty_like(c);
    kernels::recurrent_gates_gradient({.rows = c.size(0),
                                       .hidden = c.size(1),
                                       .from_input = y.data_ptr<float>(),
                                       .cell = c.data_ptr<float>(),
                                       .grad_state = of_hidden.data_ptr<float>(),
                                       .grad_cell = of_cell.data_ptr<float>(),
                                       .grad_input = from_input.data_ptr<float>(),
                                       .grad_before = before.data_ptr<float>()});
    return {from_input, before};
  }
};

}  // namespace

Tensor gru_gates(const Tensor& y, const Tensor& u, const Tensor& h) {
  return takes(h) ? GruGates::apply(y, u, h) : composed_gru(y, u, h);
}

std::pair<Tensor, Tensor> lstm_gates(const Tensor& y, const Tensor& c) {
  const variable_list next = takes(c) ? LstmGates::apply(y, c) : composed_lstm(y, c);
  return {next[0], next[1]};
}

}  // namespace attend
