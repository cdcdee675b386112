#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attend {

// The CPU, or a GPU by its number from 0.
struct Device {
  std::optional<int64_t> gpu = {};

  bool operator==(const Device&) const = default;
};

// Where a network computes, and its parts where they compute elsewhere.
struct DevicePlacement {
  Device device = {};
  std::optional<Device> encoder = {}, attention = {};
  std::optional<Device> decoder = {};  // with all that tokens are read off

  bool operator==(const DevicePlacement&) const = default;
};

// "cpu", and "cuda:0" and so on where LibTorch has them.
std::vector<std::string> present_devices();

// The device of such a name, or of "cuda", which is the first. Error on one that is not present,
// naming those that are.
Device parse_device(const std::string& name);

// Places the parts that `parts` names: "encoder=cpu,attention=cuda:0". Error on a part there is
// not, and as parse_device.
void place_parts(const std::string& parts, DevicePlacement& placement);

}  // namespace attend
