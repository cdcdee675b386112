#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace attend {

// Which device each part of a network is on: its weights, and what it computes.
struct Devices {
  at::Device encoder = at::kCPU;
  at::Device attention = at::kCPU;
  at::Device decoder = at::kCPU;  // with all that tokens are read off

  bool on_one_device() const { return encoder == decoder && attention == decoder; }
};

// All parts on `device`, except those that `parts` puts elsewhere: "encoder=cpu,attention=cuda:0".
// Error on an unknown part, and on a device that is not present, naming the devices that are.
Devices parse_devices(const std::string& device, const std::string& parts);

// "cpu", and "cuda:0" and so on where LibTorch has them.
std::vector<std::string> present_devices();

}  // namespace attend
