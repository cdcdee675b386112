#include "bench/operator.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <memory>

#include "attend/ops/attention.h"

namespace attend::bench {
namespace {

int64_t length_of(Axis axis, const kernels::Shape& s) {
  return axis == Axis::keys ? s.keys : s.depth;
}

Parameters random_parameters(const std::string& score, const kernels::Shape& s) {
  Parameters parameters;
  for (const ParameterRow& row : score_row(score).parameters) {
    if (!row.required) continue;
    std::vector<int64_t> sizes;
    sizes.reserve(row.shape.size());
    for (const Axis axis : row.shape) sizes.push_back(length_of(axis, s));
    // Keeps the variance of what the matrix maps.
    const double deviation = sizes.size() == 2 ? 1 / std::sqrt(static_cast<double>(s.depth)) : 1;
    parameters.emplace(row.name, (at::randn(sizes) * deviation).requires_grad_());
  }
  return parameters;
}

struct Inputs {
  at::Tensor query, key, value, grad_context;
  AttentionSpec spec;
};

}  // namespace

OperatorRuns operator_runs(const kernels::Shape& s, const std::string& score, Path path) {
  auto inputs = std::make_shared<Inputs>();
  inputs->query = at::randn({s.batch, s.heads, s.queries, s.depth}).requires_grad_();
  inputs->key = at::randn({s.batch, s.key_heads, s.keys, s.depth}).requires_grad_();
  inputs->value = at::randn({s.batch, s.key_heads, s.keys, s.value_depth}).requires_grad_();
  inputs->grad_context = at::randn({s.batch, s.heads, s.queries, s.value_depth});
  inputs->spec.score = Score(score, random_parameters(score, s));
  inputs->spec.path = path == Path::composed ? attend::Path::composed : attend::Path::automatic;
  const auto run = [inputs] {
    return attention(inputs->query, inputs->key, inputs->value, inputs->spec).context;
  };
  return {[run] {
            const at::NoGradGuard no_gradient;
            run();
          },
          [run, inputs] {
            std::vector<at::Tensor> wanted = {inputs->query, inputs->key, inputs->value};
            for (const auto& [name, tensor] : inputs->spec.score.parameters()) {
              wanted.push_back(tensor);
            }
            torch::autograd::grad({run()}, wanted, {inputs->grad_context});
          }};
}

OperatorRuns gather_scatter_runs(const std::vector<int64_t>& offsets,
                                 const std::vector<int64_t>& keys, int64_t nodes, int64_t depth) {
  const at::Tensor counts = at::tensor(offsets, at::kLong).diff();
  const at::Tensor rows = at::repeat_interleave(counts), columns = at::tensor(keys, at::kLong);
  std::vector<at::Tensor> inputs;
  for (int n = 0; n < 3; ++n) inputs.push_back(at::randn({nodes, depth}).requires_grad_());
  const auto run = [=] {
    const at::Tensor scores =
        (inputs[0].index_select(0, rows) * inputs[1].index_select(0, columns)).sum(-1) /
        std::sqrt(static_cast<double>(depth));
    const at::Tensor top = at::full({nodes}, -std::numeric_limits<float>::infinity())
                               .scatter_reduce(0, rows, scores.detach(), "amax");
    const at::Tensor weights = (scores - top.index_select(0, rows)).exp();
    const at::Tensor sums = at::zeros({nodes}).index_add(0, rows, weights);
    const at::Tensor shares = weights / sums.index_select(0, rows);
    return at::zeros({nodes, depth})
        .index_add(0, rows, inputs[2].index_select(0, columns) * shares.unsqueeze(1));
  };
  const at::Tensor grad_context = at::randn({nodes, depth});
  return {[run] {
            const at::NoGradGuard no_gradient;
            run();
          },
          [run, inputs, grad_context] { torch::autograd::grad({run()}, inputs, {grad_context}); }};
}

std::function<void()> gather_run(const std::vector<int64_t>& keys, const float* first,
                                 const float* second, int64_t nodes, int64_t depth) {
  const auto rows = [&](const float* from) {
    return at::from_blob(const_cast<float*>(from), {nodes, depth});
  };
  const std::vector<at::Tensor> arrays = {rows(first), rows(second)};
  const at::Tensor index = at::tensor(keys, at::kLong);
  const at::Tensor to = at::empty({index.size(0), depth});
  return [=] {
    for (const at::Tensor& from : arrays) {
      at::Tensor out = to;
      at::index_select_out(out, from, 0, index);
    }
  };
}

void set_libtorch_threads(int threads) { at::set_num_threads(threads); }

}  // namespace attend::bench
