#include "attend/mechanisms/compute_recurrence.h"

#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;
using Arrays = std::map<std::string, Tensor>;

Tensor given(const Arrays& arrays, const char* name) {
  const auto found = arrays.find(name);
  return found == arrays.end() ? Tensor() : found->second;
}

void check_arrays(const RecurrenceRow& row, const Arrays& arrays) {
  const auto check = [&](const char* name, bool wanted) {
    if (wanted && arrays.count(name) == 0)
      fail("[recurrence] {} is missing; {} has it", name, row.name);
    if (!wanted && arrays.count(name) > 0)
      fail("[recurrence] {} is given; {} does not have it", name, row.name);
  };
  for (const char* name : {"query", "key", "value"}) check(name, true);
  check("decay", row.decay != DecayKind::none);
  check("strength", row.strength);
  check("bonus", row.bonus);
  if (row.decay == DecayKind::none) return;
  const int64_t axes = row.decay == DecayKind::head ? 1 : row.decay == DecayKind::token ? 3 : 4;
  if (const int64_t found = arrays.at("decay").dim(); found != axes)
    fail("[recurrence] decay has {} axes; {} has one decay per {}, which takes {}", found, row.name,
         decay_name(row.decay), axes);
}

// Adds the gradients of the inputs, which require them.
void add_gradients(const Arrays& inputs, const Tensor& output, const Tensor& upstream,
                   Arrays& results) {
  if (upstream.sizes() != output.sizes())
    fail("[recurrence] grad has shape [{}]; the output has [{}]", fmt::join(upstream.sizes(), ", "),
         fmt::join(output.sizes(), ", "));
  std::vector<Tensor> wanted;
  wanted.reserve(inputs.size());
  for (const auto& [name, x] : inputs) wanted.push_back(x);
  const auto gradients = torch::autograd::grad({output}, wanted, {upstream});
  size_t next = 0;
  for (const auto& [name, x] : inputs) results["grad_" + name] = gradients[next++];
}

}  // namespace

Arrays compute_recurrence(const RecurrenceProblem& problem) {
  const RecurrenceRow& row = recurrence_row(problem.name);
  check_arrays(row, problem.arrays);
  const Tensor upstream = given(problem.arrays, "grad");
  Arrays inputs = problem.arrays;
  inputs.erase("grad");
  for (auto& [name, x] : inputs) x = x.detach().requires_grad_(upstream.defined());
  const RecurrenceSpec spec{.decay = given(inputs, "decay"),
                            .strength = given(inputs, "strength"),
                            .delta = row.delta,
                            .bonus = given(inputs, "bonus"),
                            .scale = problem.scale,
                            .l2_normalise = problem.l2_normalise,
                            .initial = given(inputs, "initial"),
                            .offsets = {}};
  const Tensor &query = inputs.at("query"), &key = inputs.at("key"), &value = inputs.at("value");
  const auto [output, state] = linear_recurrence(query, key, value, spec);
  Arrays results = {{"output", output.detach()}, {"state", state.detach()}};
  if (problem.weights) {
    const at::NoGradGuard no_gradient;
    results["weights"] = recurrence_weights(query, key, spec, value.size(1));
  }
  if (upstream.defined()) add_gradients(inputs, output, upstream, results);
  return results;
}

}  // namespace attend
