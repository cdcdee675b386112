#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace attend {

// For the backward pass of a function that is differentiated twice: gradients of its twin, which
// computes the same by operations that autograd follows. `upstream` holds the gradients of the
// twin's outputs; undefined: 0. Returns one gradient per input; undefined if the input requires
// none or no gradient reaches it.
std::vector<at::Tensor> twin_gradients(
    const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& upstream,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& twin);

// For the backward pass of a function with kernels: the gradients by `kernels`, or by
// twin_gradients if they are differentiated again; all undefined if no gradient reaches the
// outputs.
std::vector<at::Tensor> kernel_gradients(
    const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& upstream,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& twin,
    const std::function<std::vector<at::Tensor>()>& kernels);

}  // namespace attend
