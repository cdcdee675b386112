#pragma once

#include <ATen/ATen.h>

#include "attend/nn/device_placement.h"

namespace attend {

// Which device each part of a network is on: its weights, and what it computes.
struct Devices {
  at::Device encoder = at::kCPU;
  at::Device attention = at::kCPU;
  at::Device decoder = at::kCPU;

  bool on_one_device() const { return encoder == decoder && attention == decoder; }
};

// Error on a device that is not present, naming those that are.
Devices devices_of(const DevicePlacement& placement);

}  // namespace attend
