#include "attend/nn/dropout.h"

#include <ATen/Dispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "attend/kernels/dropout.h"
#include "attend/nn/shared_sequence.h"
#include "attend/ops/kernel_tensors.h"

namespace attend {
namespace {

using at::Tensor;

// Per piece of x: its offset in the tensor of the whole sequences and its number of elements.
std::vector<int64_t> pieces_of(const Tensor& x, const SharedSequence* shared) {
  if (shared == nullptr) return {0, x.numel()};
  // [B, positions, ...]
  const int64_t position = x.numel() == 0 ? 0 : x.numel() / (x.size(0) * x.size(1));
  std::vector<int64_t> pieces;
  for (int64_t row = 0; row < x.size(0); ++row)
    for (const Run& run : shared->runs())
      pieces.insert(pieces.end(),
                    {(row * shared->length() + run.first) * position, run.count * position});
  return pieces;
}

// Drops by a hash of the position: a sequential generator would take longer than the products
// around it.
class Drop : public torch::autograd::Function<Drop> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        double probability, int64_t seed, const std::vector<int64_t>& pieces) {
    context->saved_data["probability"] = probability;
    context->saved_data["seed"] = seed;
    context->saved_data["pieces"] = pieces;
    const Tensor from = contiguous_numbers(x);
    Tensor to = at::empty_like(from);
    AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "dropout", [&] {
      const auto* read = pointer_of<const scalar_t>(from);
      auto* write = pointer_of<scalar_t>(to);
      for (size_t i = 0; i < pieces.size(); i += 2) {
        const int64_t count = pieces[i + 1];
        kernels::drop({.probability = probability,
                       .seed = static_cast<uint64_t>(seed),
                       .first_key = pieces[i]},
                      read, count, write);
        read += count;
        write += count;
      }
    });
    return to;
  }

  // out_i = m_i x_i with the same mask m, so applying it again is differentiable again.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {apply(gradients[0], context->saved_data["probability"].toDouble(),
                  context->saved_data["seed"].toInt(), context->saved_data["pieces"].toIntVector()),
            {},
            {},
            {}};
  }
};

}  // namespace

at::Tensor dropout(const at::Tensor& x, double probability, const Pass& pass) {
  if (!pass.generator || probability == 0) return x;
  const auto drop = [&](const Tensor& from) {
    return Drop::apply(from, probability, static_cast<int64_t>(pass.draw_seed()),
                       pieces_of(from, pass.sequence));
  };
  const bool is_read = x.is_cpu() && !has_forward_gradient(x) &&
                       (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
  return is_read ? drop(x) : x * drop(at::ones(x.sizes(), at::kFloat)).to(x.options());
}

}  // namespace attend
