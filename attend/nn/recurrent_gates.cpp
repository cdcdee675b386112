#include "attend/nn/recurrent_gates.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <initializer_list>

#include "attend/kernels/recurrent_gates.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/twin_gradients.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The kernel requires whole vectors of float32, and does not support forward mode.
bool takes(const Tensor& state, std::initializer_list<Tensor> products) {
  const auto is_read = [](const Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat && !has_forward_gradient(x);
  };
  return is_read(state) && std::all_of(products.begin(), products.end(), is_read) &&
         state.size(1) % 16 == 0 && state.numel() > 0;
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

struct GruGates : torch::autograd::Function<GruGates> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& u,
                        const Tensor& h) {
    const Tensor from_input = contiguous_numbers(y), from_state = contiguous_numbers(u);
    context->save_for_backward({y, u, h});
    Tensor next = settled(h).clone(at::MemoryFormat::Contiguous);
    kernels::recurrent_gates({.rows = h.size(0),
                              .hidden = h.size(1),
                              .from_input = pointer_of<float>(from_input),
                              .from_state = pointer_of<float>(from_state),
                              .stride = 3 * h.size(1),
                              .state = pointer_of<float>(next)});
    return next;
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    if (at::GradMode::is_enabled())
      return twin_gradients(saved, upstream, [](const variable_list& own) -> variable_list {
        return {composed_gru(own[0], own[1], own[2])};
      });
    const Tensor y = contiguous_numbers(saved[0]), u = contiguous_numbers(saved[1]);
    const Tensor h = contiguous_numbers(saved[2]), slope = contiguous_numbers(upstream[0]);
    const Tensor from_input = at::empty_like(y), from_state = at::empty_like(u);
    const Tensor before = at::empty_like(h);
    kernels::recurrent_gates_gradient({.rows = h.size(0),
                                       .hidden = h.size(1),
                                       .from_input = pointer_of<float>(y),
                                       .from_state = pointer_of<float>(u),
                                       .state = pointer_of<float>(h),
                                       .grad_state = pointer_of<float>(slope),
                                       .grad_input = pointer_of<float>(from_input),
                                       .grad_product = pointer_of<float>(from_state),
                                       .grad_before = pointer_of<float>(before)});
    return {from_input, from_state, before};
  }
};

struct LstmGates : torch::autograd::Function<LstmGates> {
  static variable_list forward(AutogradContext* context, const Tensor& y, const Tensor& c) {
    const Tensor from_input = contiguous_numbers(y);
    context->save_for_backward({y, c});
    Tensor hidden = at::empty(c.sizes(), c.options());
    Tensor next = settled(c).clone(at::MemoryFormat::Contiguous);
    kernels::recurrent_gates({.rows = c.size(0),
                              .hidden = c.size(1),
                              .from_input = pointer_of<float>(from_input),
                              .stride = 4 * c.size(1),
                              .state = pointer_of<float>(hidden),
                              .cell = pointer_of<float>(next)});
    return {hidden, next};
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    if (at::GradMode::is_enabled())
      return twin_gradients(saved, upstream,
                            [](const variable_list& own) { return composed_lstm(own[0], own[1]); });
    const Tensor y = contiguous_numbers(saved[0]), c = contiguous_numbers(saved[1]);
    const Tensor grad_state = contiguous_numbers(upstream[0]);
    const Tensor grad_cell = contiguous_numbers(upstream[1]);
    const Tensor from_input = at::empty_like(y), before = at::empty_like(c);
    kernels::recurrent_gates_gradient({.rows = c.size(0),
                                       .hidden = c.size(1),
                                       .from_input = pointer_of<float>(y),
                                       .cell = pointer_of<float>(c),
                                       .grad_state = pointer_of<float>(grad_state),
                                       .grad_cell = pointer_of<float>(grad_cell),
                                       .grad_input = pointer_of<float>(from_input),
                                       .grad_before = pointer_of<float>(before)});
    return {from_input, before};
  }
};

}  // namespace

Tensor gru_gates(const Tensor& y, const Tensor& u, const Tensor& h) {
  return takes(h, {y, u}) ? GruGates::apply(y, u, h) : composed_gru(y, u, h);
}

std::pair<Tensor, Tensor> lstm_gates(const Tensor& y, const Tensor& c) {
  const variable_list next = takes(c, {y}) ? LstmGates::apply(y, c) : composed_lstm(y, c);
  return {next[0], next[1]};
}

}  // namespace attend
