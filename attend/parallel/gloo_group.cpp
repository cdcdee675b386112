#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "attend/base/error.h"
#include "attend/parallel/gloo_group-inl.h"

namespace attend::internal {
namespace {

using std::chrono::milliseconds;
using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// The addresses of a host; null if there are none.
Addresses addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  // Connecting a datagram socket sends nothing; the port does not matter.
  if (getaddrinfo(host.c_str(), "9", &wanted, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

// This machine's address in the network that leads to `address`; empty if there is none.
std::string address_by_way_to(const addrinfo& address) {
  const int number = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0);
  if (number < 0) return "";
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  char text[NI_MAXHOST] = "";
  const auto* own_address = reinterpret_cast<const sockaddr*>(&own);
  const bool found =
      ::connect(number, address.ai_addr, address.ai_addrlen) == 0 &&
      ::getsockname(number, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
      ::getnameinfo(own_address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0;
  ::close(number);
  return found ? text : "";
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::shared_ptr<gloo::transport::Device> device_for(const ProcessRank& place) {
  const bool is_here =
      !place.file.empty() || is_loopback(place.address) || place.address == "localhost";
  if (is_here) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface && *interface) return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  // Gloo's default is the address of the machine's own name. This is often a loopback address
  // (Debian's 127.0.1.1), which other machines cannot reach.
  const std::string own = own_address_towards(place.address);
  return own.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                     : c10d::ProcessGroupGloo::createDeviceForHostname(own);
}

}  // namespace

std::string own_address_towards(const std::string& host) {
  std::string loopback;
  // Rank 0 may resolve its own machine to a loopback address. The route to any other machine then
  // gives its address for other ranks. No packet is sent to 192.0.2.1, which is reserved (RFC
  // 5737).
  for (const std::string& target : {host, std::string("192.0.2.1")}) {
    const Addresses all = addresses_of(target);
    for (const addrinfo* address = all.get(); address != nullptr; address = address->ai_next) {
      std::string own = address_by_way_to(*address);
      if (!own.empty() && !is_loopback(own)) return own;
      if (loopback.empty()) loopback = own;
    }
    if (loopback.empty()) break;
  }
  return loopback;
}

// Gloo waits for ended processes as long as for slow ones, retries several times, and cannot be
// interrupted. Its thread is therefore abandoned after the timeout or if `meanwhile` throws.
GlooGroup connect_gloo(const c10::intrusive_ptr<c10d::Store>& store, const ProcessRank& place) {
  const milliseconds timeout(static_cast<int64_t>(1000 * place.timeout));
  const auto end = std::chrono::steady_clock::now() + timeout;
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(device_for(place));
  options->threads = 2;
  std::packaged_task<GlooGroup()> task([store, place, options] {
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(place.rank),
                                                       static_cast<int>(place.size), options);
  });
  std::future<GlooGroup> group = task.get_future();
  std::thread(std::move(task)).detach();
  try {
    while (group.wait_for(milliseconds(200)) != std::future_status::ready) {
      if (place.meanwhile) place.meanwhile();
      if (std::chrono::steady_clock::now() > end)
        throw std::runtime_error(fmt::format("not connected after {} s", place.timeout));
    }
    return group.get();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (!place.file.empty()) throw;
    const std::string_view text = error.what();
    throw std::runtime_error(
        fmt::format("{}; if a rank's own address is wrong, GLOO_SOCKET_IFNAME names the network "
                    "interface of its machine that leads to the others",
                    text.substr(0, text.find('\n'))));
  }
}

}  // namespace attend::internal
