#include "attend/nn/device_placement.h"

#include <torch/cuda.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/nn/devices.h"

namespace attend {
namespace {

struct PartRow {
  const char* name;
  std::optional<Device> DevicePlacement::*device;
};
constexpr PartRow placed_parts[] = {{"encoder", &DevicePlacement::encoder},
                                    {"attention", &DevicePlacement::attention},
                                    {"decoder", &DevicePlacement::decoder}};

[[noreturn]] void fail_absent(const std::string& name) {
  fail("device {} is not present; there is {}", in_quotes(name),
       fmt::join(present_devices(), ", "));
}

at::Device present_device(const Device& device) {
  if (!device.gpu) return at::kCPU;
  if (*device.gpu < 0 || *device.gpu >= static_cast<int64_t>(torch::cuda::device_count()))
    fail_absent(fmt::format("cuda:{}", *device.gpu));
  return {at::kCUDA, static_cast<at::DeviceIndex>(*device.gpu)};
}

}  // namespace

std::vector<std::string> present_devices() {
  std::vector<std::string> names = {"cpu"};
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  for (int64_t i = 0; i < count; ++i) names.push_back("cuda:" + std::to_string(i));
  return names;
}

Device parse_device(const std::string& name) {
  const auto present = present_devices();
  const std::string wanted = name == "cuda" ? "cuda:0" : name == "cpu:0" ? "cpu" : name;
  const auto found = std::find(present.begin(), present.end(), wanted);
  if (found == present.end()) fail_absent(name);
  if (found == present.begin()) return {};
  return {found - present.begin() - 1};
}

void place_parts(const std::string& parts, DevicePlacement& placement) {
  for (size_t begin = 0; begin < parts.size();) {
    const size_t end = std::min(parts.find(',', begin), parts.size());
    const std::string each = parts.substr(begin, end - begin);
    const size_t sign = std::min(each.find('='), each.size());
    const auto* row =
        std::find_if(std::begin(placed_parts), std::end(placed_parts),
                     [&](const PartRow& part) { return part.name == each.substr(0, sign); });
    if (row == std::end(placed_parts) || sign == each.size())
      fail(
          "{} places no part of a network; write encoder=DEVICE, attention=DEVICE or "
          "decoder=DEVICE, separated by commas",
          in_quotes(each));
    placement.*row->device = parse_device(each.substr(sign + 1));
    begin = end + 1;
  }
}

Devices devices_of(const DevicePlacement& placement) {
  const auto device = [&](const std::optional<Device>& part) {
    return present_device(part.value_or(placement.device));
  };
  return {device(placement.encoder), device(placement.attention), device(placement.decoder)};
}

}  // namespace attend
