#pragma once

#include <ATen/ATen.h>

namespace attend::reference {

// Returns device `index`, 0 or 1, of two devices that use the memory of the CPU and compute on it,
// but count as other devices: as on an accelerator, an operation on tensors of different devices is
// an error. They have the type hip, which Debian's LibTorch reserves but does not support.
at::Device software_device(int index);

}  // namespace attend::reference
