#pragma once

#include <ATen/ATen.h>

namespace attend::reference {

// Number `index`, 0 or 1, of two devices that are memory of the CPU and compute on it, but count as
// others: as on an accelerator, what is computed of tensors on different ones is an error. They
// bear the name hip, which LibTorch keeps for a device that Debian's does not have.
at::Device software_device(int index);

}  // namespace attend::reference
