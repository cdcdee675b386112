#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace attend {

// For the backward pass of a function whose gradients are to be differentiated again: those of its
// twin, which computes the same by operations that autograd follows. `upstream` are the gradients
// of the twin's outputs, undefined for 0. Returns one for each input, undefined for those that
// require none and those that nothing arrives at.
std::vector<at::Tensor> twin_gradients(
    const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& upstream,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& twin);

}  // namespace attend
