#include "attend/nn/device_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "attend/nn/devices.h"
#include "tests/support/files.h"

namespace attend {
namespace device_placement_test {

using test::error_of;
using testing::HasSubstr;

DevicePlacement placed(const std::string& parts) {
  DevicePlacement placement;
  place_parts(parts, placement);
  return placement;
}

TEST(DevicePlacement, IsReadFromText) {
  EXPECT_EQ(parse_device("cpu"), Device());
  EXPECT_EQ(placed(""), DevicePlacement());
  const DevicePlacement placement = placed("encoder=cpu:0,decoder=cpu");
  EXPECT_EQ(placement, (DevicePlacement{.encoder = Device(), .decoder = Device()}));
  EXPECT_TRUE(devices_of(placement).encoder.is_cpu());
  EXPECT_TRUE(devices_of(placement).on_one_device());
  Devices apart;
  apart.decoder = at::Device(at::kCUDA, 1);
  EXPECT_FALSE(apart.on_one_device());
}

TEST(DevicePlacement, NamesTheDevicesThatThereAre) {
  EXPECT_THAT(present_devices(), testing::Contains("cpu"));
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  const std::string far = fmt::format("cuda:{}", count);
  for (const std::string& bad : {far, std::string("gpu"), std::string(), std::string("cuda:-1")})
    EXPECT_THAT(error_of([&] { parse_device(bad); }), HasSubstr("is not present; there is cpu"));
  EXPECT_THAT(error_of([&] { placed("encoder=cpu,decoder=" + far); }),
              HasSubstr("device '" + far + "' is not present"));
  EXPECT_THAT(error_of([&] { devices_of({.attention = Device{count}}); }),
              HasSubstr("device '" + far + "' is not present"));
  EXPECT_THAT(error_of([&] { devices_of({.device = {-1}}); }), HasSubstr("is not present"));
  for (const char* bad : {"encoder", "output=cpu", "encoder=cpu,,decoder=cpu", "=cpu"})
    EXPECT_THAT(error_of([&] { placed(bad); }),
                HasSubstr("write encoder=DEVICE, attention=DEVICE or decoder=DEVICE"))
        << bad;
}

}  // namespace device_placement_test
}  // namespace attend
