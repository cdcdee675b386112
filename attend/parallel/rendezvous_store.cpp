#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "attend/base/error.h"
#include "attend/parallel/rendezvous_store-inl.h"

namespace attend::internal {
namespace {

using std::chrono::milliseconds;

c10::intrusive_ptr<c10d::Store> open_store(const ProcessRank& place, milliseconds timeout) {
  const auto size = static_cast<int>(place.size);
  if (!place.file.empty()) return c10::make_intrusive<c10d::FileStore>(place.file, size);
  c10d::TCPStoreOptions options;
  // torchrun itself listens on the port.
  options.port = static_cast<uint16_t>(place.port + 1);
  options.isServer = place.rank == 0;
  options.numWorkers = static_cast<size_t>(size);
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(place.address, options);
}

// Without this check, other processes would wait for a process with a duplicate rank.
void check_rank(c10d::Store& store, const ProcessRank& place) {
  if (store.add(fmt::format("rank-{}", place.rank), 1) > 1)
    fail("two processes of the run have rank {} of {}; give each its own RANK", place.rank,
         place.size);
}

// Polls: after a timeout, wait() of TCPStore leaves its answer in the stream, and all later answers
// are misread.
void wait_for_others(c10d::Store& store, const ProcessRank& place, milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (int64_t other = 0; other < place.size;) {
    if (store.check({fmt::format("rank-{}", other)})) {
      ++other;
      continue;
    }
    if (place.meanwhile) place.meanwhile();
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error(fmt::format("rank {} has not come", other));
    std::this_thread::sleep_for(milliseconds(100));
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Store> meeting_store(const ProcessRank& place) {
  const milliseconds timeout(static_cast<int64_t>(1000 * place.timeout));
  const auto store =
      c10::make_intrusive<c10d::PrefixStore>("attend-" + place.run, open_store(place, timeout));
  store->setTimeout(timeout);
  check_rank(*store, place);
  wait_for_others(*store, place, timeout);
  return store;
}

}  // namespace attend::internal
