#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attend {

// The CPU, or a GPU numbered from 0.
struct Device {
  std::optional<int64_t> gpu = {};

  bool operator==(const Device&) const = default;
};

// Device of a network, and devices of parts that compute elsewhere.
struct DevicePlacement {
  Device device = {};
  std::optional<Device> encoder = {}, attention = {};
  std::optional<Device> decoder = {};  // includes the output layer

  bool operator==(const DevicePlacement&) const = default;
};

// Available devices: "cpu", then "cuda:0", "cuda:1" and so on if LibTorch supports them.
std::vector<std::string> present_devices();

// Parses a device name; "cuda" is the first GPU. Error if the device is not available; the message
// lists the available devices.
Device parse_device(const std::string& name);

// Sets the devices of the listed parts, for example "encoder=cpu,attention=cuda:0". Error if a part
// does not exist, and as parse_device.
void place_parts(const std::string& parts, DevicePlacement& placement);

}  // namespace attend
