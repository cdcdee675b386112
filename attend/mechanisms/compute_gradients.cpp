#include "attend/mechanisms/compute_gradients.h"

#include <torch/autograd.h>

#include "attend/base/error.h"
#include "attend/ops/attention.h"

namespace attend {
namespace {

using at::Tensor;

// Inputs of the problem as differentiable variables, with the names of their gradients.
struct Variables {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;

  Tensor add(const std::string& name, const Tensor& tensor) {
    names.push_back("grad_" + name);
    tensors.push_back(tensor.detach().set_requires_grad(true));
    return tensors.back();
  }
};

}  // namespace

std::map<std::string, Tensor> compute_gradients(const ComputeProblem& problem) {
  Variables variables;
  ComputeProblem varied = problem;
  varied.query = variables.add("query", problem.query);
  varied.key = variables.add("key", problem.key);
  varied.value = variables.add("value", problem.value);
  for (auto& [name, tensor] : varied.parameters) tensor = variables.add(name, tensor);
  const Attended given = attended(varied);
  const Tensor context = attention(given.query, given.key, given.value, given.spec).context;
  if (context.sizes() != problem.context_gradient.sizes())
    fail("--grad: has shape [{}], the context [{}]; they must match",
         fmt::join(problem.context_gradient.sizes(), ", "), fmt::join(context.sizes(), ", "));
  const auto found =
      torch::autograd::grad({context}, variables.tensors, {problem.context_gradient},
                            /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < found.size(); ++i) {
    // Unused inputs have no gradient: the location score reads no key, drawn weights read no score.
    named[variables.names[i]] =
        found[i].defined() ? found[i] : at::zeros_like(variables.tensors[i]);
  }
  return named;
}

}  // namespace attend
