#include "attend/nn/dropout.h"

#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "attend/kernels/dropout.h"

namespace attend {
namespace {

using at::Tensor;

// Dropped by a hash of the place: a generator that draws one number after another takes longer than
// the products around it.
class Drop : public torch::autograd::Function<Drop> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        double probability, int64_t seed) {
    context->saved_data["probability"] = probability;
    context->saved_data["seed"] = seed;
    const Tensor from = x.contiguous();
    Tensor to = at::empty_like(from);
    const kernels::Dropout dropout{probability, static_cast<uint64_t>(seed)};
    AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "dropout", [&] {
      kernels::drop(dropout, from.data_ptr<scalar_t>(), from.numel(), to.data_ptr<scalar_t>());
    });
    return to;
  }

  // out_i = m_i x_i, m the same: applied again it is differentiable again.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {apply(gradients[0], context->saved_data["probability"].toDouble(),
                  context->saved_data["seed"].toInt()),
            {},
            {}};
  }
};

}  // namespace

at::Tensor dropout(const at::Tensor& x, double probability, const DropoutGenerator& generator) {
  if (!generator || probability == 0) return x;
  if (x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble))
    return Drop::apply(x, probability, static_cast<int64_t>(draw_seed(generator)));
  at::NoGradGuard no_gradient;
  const at::Tensor mask = at::empty(x.sizes(), x.options().device(at::kCPU))
                              .bernoulli_(1 - probability, generator)
                              .div_(1 - probability);
  at::AutoGradMode with_gradient(true);
  return x * mask.to(x.device());
}

uint64_t draw_seed(const DropoutGenerator& generator) {
  if (!generator) return 0;
  const at::Tensor seed = at::empty({}, at::kLong);
  seed.random_(1, std::numeric_limits<int64_t>::max(), generator);
  return static_cast<uint64_t>(seed.item<int64_t>());
}

}  // namespace attend
