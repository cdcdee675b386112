#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "attend/kernels/packed_matrix.h"
#include "attend/kernels/scope.h"
#include "attend/nn/attention_choices.h"
#include "attend/ops/kernel_tensors.h"

// Conversion of layer tensors to the inputs of packed steps.

namespace attend {

inline int64_t up_to(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

inline bool is_plain_float(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat;
}

// bias: undefined for none; round_rows: see PackedMatrix.
inline kernels::PackedMatrix packed(const at::Tensor& weight, const at::Tensor& bias,
                                    kernels::WeightType weights, bool round_rows = false) {
  const at::Tensor numbers = contiguous_numbers(weight.detach());
  const at::Tensor plain = bias.defined() ? contiguous_numbers(bias.detach()) : bias;
  return {pointer_of<const float>(numbers),
          pointer_of<const float>(plain),
          weight.size(0),
          weight.size(1),
          weights,
          round_rows};
}

// [parts * depth, ...] -> [parts * padded, ...], with zeros after each part.
inline at::Tensor with_padded_parts(const at::Tensor& x, int64_t parts, int64_t padded) {
  const at::Tensor apart = x.detach().unflatten(0, {parts, x.size(0) / parts});
  std::vector<int64_t> shape = apart.sizes().vec();
  shape[1] = padded;
  at::Tensor result = at::zeros(shape, x.options().requires_grad(false));
  result.narrow(1, 0, apart.size(1)).copy_(apart);
  return result.flatten(0, 1);
}

// Grows a buffer without keeping its contents; a warm step therefore allocates nothing.
inline float* with_room(std::vector<float>& buffer, int64_t count) {
  if (std::ssize(buffer) < count) buffer.resize(static_cast<size_t>(count));
  return buffer.data();
}

// Whether each query reads all keys by softmax without a bias. For self-attention (`itself`) also
// if it reads all keys up to its own position.
bool reads_all_by_softmax(const AttentionChoices& choices, bool itself);

// The scope in text form, if its conditions are all windows; otherwise unset.
std::optional<kernels::Scope> scope_of_windows(const std::string& text);

}  // namespace attend
