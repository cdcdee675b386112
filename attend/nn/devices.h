#pragma once

#include <ATen/ATen.h>

#include "attend/nn/device_placement.h"

namespace attend {

// Device of the weights and the computation of each part of a network.
struct Devices {
  at::Device encoder = at::kCPU;
  at::Device attention = at::kCPU;
  at::Device decoder = at::kCPU;

  bool on_one_device() const { return encoder == decoder && attention == decoder; }
};

// Error if a device is not available; the message lists the available devices.
Devices devices_of(const DevicePlacement& placement);

}  // namespace attend
