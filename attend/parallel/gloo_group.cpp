#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "attend/parallel/gloo_group-inl.h"

namespace attend::internal {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<gloo::transport::Device> device_for(const ProcessPlace& place) {
  const bool is_here = !place.file.empty() || place.address == "127.0.0.1" ||
                       place.address == "localhost" || place.address == "::1";
  if (is_here) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface && *interface ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : c10d::ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

// Gloo waits for one that has ended since as long as for one that is slow, and cannot be
// interrupted: its thread is left to itself when `meanwhile` throws.
GlooGroup connect_gloo(const c10::intrusive_ptr<c10d::Store>& store, const ProcessPlace& place) {
  const milliseconds timeout(static_cast<int64_t>(1000 * place.timeout));
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(device_for(place));
  options->threads = 2;
  std::packaged_task<GlooGroup()> task([store, place, options] {
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(place.rank),
                                                       static_cast<int>(place.size), options);
  });
  std::future<GlooGroup> group = task.get_future();
  std::thread(std::move(task)).detach();
  while (group.wait_for(milliseconds(200)) != std::future_status::ready)
    if (place.meanwhile) place.meanwhile();
  return group.get();
}

}  // namespace attend::internal
