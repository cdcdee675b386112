#include "attend/nn/dropout.h"

#include <algorithm>
#include <limits>

#include "attend/kernels/dropout.h"

namespace attend {
namespace {

using at::Tensor;

// to_i = from_i times 0 or 1 / (1 - p). Which one follows from the seed and the place alone: a
// generator that draws one number after another takes longer than the products around it.
template <class T>
void drop(const T* from, T* to, int64_t count, const kernels::Dropout& dropout) {
  const uint32_t threshold = kernels::dropout_threshold(dropout);
  const T scale = static_cast<T>(1 / (1 - dropout.probability));
  // A key has 32 bits; a row of so many places keeps them apart.
  constexpr int64_t row = int64_t{1} << 20;
  for (int64_t first = 0; first < count; first += row) {
    const uint32_t key = kernels::dropout_row_key(dropout, {0, 0, first / row}, 1);
    const auto places = static_cast<int32_t>(std::min(row, count - first));
    for (int32_t i = 0; i < places; ++i) {
      const uint32_t drawn = kernels::dropout_mix(key ^ kernels::dropout_key(i));
      to[first + i] = drawn < threshold ? T{0} : from[first + i] * scale;
    }
  }
}

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
      drop(from.data_ptr<scalar_t>(), to.data_ptr<scalar_t>(), from.numel(), dropout);
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

at::Tensor dropout(const at::Tensor& x, double probability, const Noise& noise) {
  if (!noise || probability == 0) return x;
  if (x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble))
    return Drop::apply(x, probability, static_cast<int64_t>(draw_seed(noise)));
  at::NoGradGuard no_gradient;
  const at::Tensor mask = at::empty(x.sizes(), x.options().device(at::kCPU))
                              .bernoulli_(1 - probability, noise)
                              .div_(1 - probability);
  at::AutoGradMode with_gradient(true);
  return x * mask.to(x.device());
}

uint64_t draw_seed(const Noise& noise) {
  if (!noise) return 0;
  const at::Tensor seed = at::empty({}, at::kLong);
  seed.random_(1, std::numeric_limits<int64_t>::max(), noise);
  return static_cast<uint64_t>(seed.item<int64_t>());
}

}  // namespace attend
