#include "attend/nn/started_threads.h"

#include <system_error>

#include "attend/base/error.h"

namespace attend {

void start_threads(std::vector<std::thread>& threads, size_t count,
                   const std::function<void()>& work, const std::function<void()>& stop) {
  threads.reserve(count);
  try {
    while (threads.size() < count) threads.emplace_back(work);
  } catch (const std::system_error& error) {
    stop();
    fail(
        "thread {} of {} cannot be started: {}; take fewer threads or replicas, or raise the "
        "limits of memory and processes (ulimit -v, -u)",
        threads.size() + 1, count, error.code().message());
  }
}

}  // namespace attend
