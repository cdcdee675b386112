#include "attend/ops/causal_convolution.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "attend/base/error.h"
#include "attend/kernels/causal_convolution.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/ops/shape_text.h"
#include "attend/ops/twin_gradients.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = c10::optional<Tensor>;

namespace convolution_input {
enum Index { input, weight, bias, state, count };
}

// Settled inputs of the kernels, all contiguous.
template <class T>
kernels::CausalConvolution<T> problem_of(variable_list& x, bool silu) {
  using namespace convolution_input;
  for (Tensor& each : x)
    if (each.defined()) each = contiguous_numbers(each);
  kernels::CausalConvolution<T> p;
  p.batch = x[input].size(0);
  p.tokens = x[input].size(1);
  p.channels = x[input].size(2);
  p.width = x[weight].size(1);
  p.input = pointer_of<const T>(x[input]);
  p.batch_stride = p.tokens * p.channels;
  p.token_stride = p.channels;
  p.weight = pointer_of<const T>(x[weight]);
  p.bias = pointer_of<const T>(x[bias]);
  p.state = pointer_of<const T>(x[state]);
  p.silu = silu;
  return p;
}

// Calls run.operator()<T>() with float or double.
template <class Run>
auto with_arithmetic(const Tensor& x, Run run) {
  return x.scalar_type() == at::kDouble ? run.template operator()<double>()
                                        : run.template operator()<float>();
}

class FusedConvolution : public torch::autograd::Function<FusedConvolution> {
 public:
  static variable_list forward(AutogradContext* context, bool silu, const Tensor& input,
                               const Tensor& weight, const Optional& bias, const Optional& state) {
    const auto given = [](const Optional& x) { return x ? *x : Tensor(); };
    variable_list x = {input, weight, given(bias), given(state)};
    context->save_for_backward(x);
    context->saved_data["silu"] = silu;
    context->set_materialize_grads(false);
    return with_arithmetic(input, [&]<class T>() -> variable_list {
      const auto problem = problem_of<T>(x, silu);
      const Tensor output = at::empty(input.sizes(), x[0].options());
      const Tensor last =
          at::empty({problem.batch, problem.width - 1, problem.channels}, x[0].options());
      kernels::causal_convolution<T>(problem, pointer_of<T>(output), pointer_of<T>(last),
                                     at::get_num_threads());
      return {output, last};
    });
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    variable_list x = context->get_saved_variables();
    const bool silu = context->saved_data["silu"].toBool();
    const variable_list found = kernel_gradients(
        x, upstream,
        [silu](const variable_list& own) -> variable_list {
          const auto [output, state] =
              composed_causal_convolution(own[0], own[1], own[2], own[3], silu);
          return {output, state};
        },
        [&] { return run_backward(x, silu, upstream); });
    variable_list gradients = {Tensor()};  // for the activation
    gradients.insert(gradients.end(), found.begin(), found.end());
    return gradients;
  }

 private:
  static variable_list run_backward(variable_list& x, bool silu, const variable_list& upstream) {
    return with_arithmetic(x[0], [&]<class T>() -> variable_list {
      const auto problem = problem_of<T>(x, silu);
      variable_list g(x.size());
      for (size_t i = 0; i < x.size(); ++i)
        if (x[i].defined()) g[i] = at::empty(x[i].sizes(), x[i].options());
      const Tensor grad_output =
          upstream[0].defined() ? contiguous_numbers(upstream[0]) : at::zeros_like(g[0]);
      const Tensor grad_last = upstream[1].defined() ? contiguous_numbers(upstream[1]) : Tensor();
      kernels::causal_convolution_backward<T>(
          problem, pointer_of<const T>(grad_output), pointer_of<const T>(grad_last),
          {pointer_of<T>(g[0]), pointer_of<T>(g[1]), pointer_of<T>(g[2]), pointer_of<T>(g[3])},
          at::get_num_threads());
      return g;
    });
  }
};

void check_convolution(const variable_list& x) {
  using namespace convolution_input;
  const char* const names[] = {"input", "weight", "bias", "state"};
  if (!x[input].defined() || x[input].dim() != 3)
    fail("[convolution] input has shape {}; it must have [B, T, C]", shape_of(x[input]));
  const int64_t channels = x[input].size(2);
  if (!x[weight].defined() || x[weight].dim() != 2 || x[weight].size(0) != channels ||
      x[weight].size(1) < 1)
    fail("[convolution] weight has shape {}; it must have [{}, width], width at least 1",
         shape_of(x[weight]), channels);
  const std::vector<int64_t> of_bias = {channels},
                             of_state = {x[input].size(0), x[weight].size(1) - 1, channels};
  const auto expect = [&](Index index, const std::vector<int64_t>& wanted) {
    if (x[index].defined() && x[index].sizes() != at::IntArrayRef(wanted))
      fail("[convolution] {} has shape {}; it must have [{}]", names[index], shape_of(x[index]),
           fmt::join(wanted, ", "));
  };
  expect(bias, of_bias);
  expect(state, of_state);
  for (size_t i = 0; i < x.size(); ++i) {
    if (!x[i].defined()) continue;
    if (!at::isFloatingType(x[i].scalar_type()))
      fail("[convolution] {} is {}; it must be a floating-point tensor", names[i],
           c10::toString(x[i].scalar_type()));
    if (x[i].device() != x[0].device())
      fail("[convolution] {} is on {}, input on {}; they must be on the same device", names[i],
           x[i].device().str(), x[0].device().str());
  }
}

}  // namespace

CausalConvolutionResult composed_causal_convolution(const Tensor& input, const Tensor& weight,
                                                    const Tensor& bias, const Tensor& state,
                                                    bool silu) {
  const int64_t tokens = input.size(1), width = weight.size(1);
  const Tensor before = state.defined()
                            ? state
                            : at::zeros({input.size(0), width - 1, input.size(2)}, input.options());
  const Tensor all = at::cat({before, input}, 1);
  Tensor sum = bias.defined() ? bias : at::zeros({input.size(2)}, input.options());
  for (int64_t w = 0; w < width; ++w) sum = sum + weight.select(1, w) * all.narrow(1, w, tokens);
  if (silu) sum = sum * sum.sigmoid();
  return {sum, all.narrow(1, tokens, width - 1)};
}

CausalConvolutionResult causal_convolution(const Tensor& input, const Tensor& weight,
                                           const Tensor& bias, const Tensor& state, bool silu) {
  variable_list x = {input, weight, bias, state};
  check_convolution(x);
  const WithoutAutocast no_autocast;
  const auto arithmetic = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  for (Tensor& each : x)
    if (each.defined()) each = each.to(arithmetic);
  const bool composed =
      !input.device().is_cpu() || std::any_of(x.begin(), x.end(), has_forward_gradient);
  if (composed) {
    const auto [output, last] = composed_causal_convolution(x[0], x[1], x[2], x[3], silu);
    return {output.to(input.scalar_type()), last.to(input.scalar_type())};
  }
  const auto optional = [](const Tensor& t) { return t.defined() ? Optional(t) : Optional(); };
  const variable_list results =
      FusedConvolution::apply(silu, x[0], x[1], optional(x[2]), optional(x[3]));
  return {results[0].to(input.scalar_type()), results[1].to(input.scalar_type())};
}

}  // namespace attend
