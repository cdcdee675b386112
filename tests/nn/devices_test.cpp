#include "attend/nn/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "tests/support/files.h"

namespace attend {
namespace devices_test {

using test::error_of;
using testing::HasSubstr;

TEST(Devices, IsReadFromText) {
  EXPECT_TRUE(parse_devices("cpu", "").on_one_device());
  const Devices devices = parse_devices("cpu", "encoder=cpu:0,decoder=cpu");
  EXPECT_TRUE(devices.encoder.is_cpu());
  EXPECT_TRUE(devices.on_one_device());
  Devices apart;
  apart.decoder = at::Device(at::kCUDA, 1);
  EXPECT_FALSE(apart.on_one_device());
}

TEST(Devices, NamesTheDevicesThatThereAre) {
  EXPECT_THAT(present_devices(), testing::Contains("cpu"));
  const std::string far = "cuda:" + std::to_string(torch::cuda::device_count());
  for (const std::string& bad : {far, std::string("gpu"), std::string(), std::string("cuda:-1")})
    EXPECT_THAT(error_of([&] { parse_devices(bad, ""); }),
                HasSubstr("is not present; there is cpu"));
  EXPECT_THAT(error_of([&] { parse_devices("cpu", "encoder=cpu,decoder=" + far); }),
              HasSubstr("device '" + far + "' is not present"));
  for (const char* bad : {"encoder", "output=cpu", "encoder=cpu,,decoder=cpu", "=cpu"})
    EXPECT_THAT(error_of([&] { parse_devices("cpu", bad); }),
                HasSubstr("write encoder=DEVICE, attention=DEVICE or decoder=DEVICE"))
        << bad;
}

}  // namespace devices_test
}  // namespace attend
