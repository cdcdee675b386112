#include "attend/nn/devices.h"

#include <torch/cuda.h>

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

at::Device parse_device(const std::string& text) {
  const auto present = present_devices();
  const std::string wanted = text == "cuda" ? "cuda:0" : text == "cpu:0" ? "cpu" : text;
  if (std::find(present.begin(), present.end(), wanted) == present.end())
    fail("device {} is not present; there is {}", in_quotes(text), fmt::join(present, ", "));
  return at::Device(wanted);
}

}  // namespace

std::vector<std::string> present_devices() {
  std::vector<std::string> names = {"cpu"};
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  for (int64_t i = 0; i < count; ++i) names.push_back("cuda:" + std::to_string(i));
  return names;
}

Devices parse_devices(const std::string& device, const std::string& parts) {
  const at::Device all = parse_device(device);
  Devices devices{all, all, all};
  for (size_t begin = 0; begin < parts.size();) {
    const size_t end = std::min(parts.find(',', begin), parts.size());
    const std::string each = parts.substr(begin, end - begin);
    const size_t sign = std::min(each.find('='), each.size());
    const std::string part = each.substr(0, sign);
    at::Device* place = part == "encoder"     ? &devices.encoder
                        : part == "attention" ? &devices.attention
                        : part == "decoder"   ? &devices.decoder
                                              : nullptr;
    if (place == nullptr || sign == each.size())
      fail(
          "{} places no part of a network; write encoder=DEVICE, attention=DEVICE or "
          "decoder=DEVICE, separated by commas",
          in_quotes(each));
    *place = parse_device(each.substr(sign + 1));
    begin = end + 1;
  }
  return devices;
}

}  // namespace attend
