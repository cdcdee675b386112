#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace attend {

// Starts threads that run `work` until there are `count`. If the system refuses a thread, calls
// `stop`, which must end and join the running threads, and throws an Error: destroying a running
// thread would terminate the program.
void start_threads(std::vector<std::thread>& threads, size_t count,
                   const std::function<void()>& work, const std::function<void()>& stop);

}  // namespace attend
