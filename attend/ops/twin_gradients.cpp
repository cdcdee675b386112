#include "attend/ops/twin_gradients.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "attend/ops/kernel_tensors.h"

namespace attend {

using torch::autograd::variable_list;

variable_list twin_gradients(const variable_list& inputs, const variable_list& upstream,
                             const std::function<variable_list(const variable_list&)>& twin) {
  const WithoutAutocast no_autocast;
  // A tensor may be two inputs, or be computed from another input. A view per input separates their
  // gradients; autograd sums the paths.
  variable_list own = inputs, wanted;
  for (at::Tensor& x : own) {
    if (!x.defined() || !x.requires_grad()) continue;
    x = x.view_as(x);
    wanted.push_back(x);
  }
  const variable_list outputs = twin(own);
  variable_list reached, seeds;
  // Not every output depends on an input: the lse of some normalisers is 0.
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!upstream[i].defined() || !outputs[i].requires_grad()) continue;
    reached.push_back(outputs[i]);
    seeds.push_back(upstream[i].to(outputs[i].scalar_type()));
  }
  variable_list gradients(inputs.size());
  if (reached.empty()) return gradients;
  const variable_list found = torch::autograd::grad(reached, wanted, seeds, /*retain_graph=*/true,
                                                    /*create_graph=*/true, /*allow_unused=*/true);
  for (size_t i = 0, n = 0; i < inputs.size(); ++i)
    if (inputs[i].defined() && inputs[i].requires_grad()) gradients[i] = found[n++];
  return gradients;
}

variable_list kernel_gradients(const variable_list& inputs, const variable_list& upstream,
                               const std::function<variable_list(const variable_list&)>& twin,
                               const std::function<variable_list()>& kernels) {
  const bool reached = std::any_of(upstream.begin(), upstream.end(),
                                   [](const at::Tensor& x) { return x.defined(); });
  if (!reached) return variable_list(inputs.size());
  return at::GradMode::is_enabled() ? twin_gradients(inputs, upstream, twin) : kernels();
}

}  // namespace attend
