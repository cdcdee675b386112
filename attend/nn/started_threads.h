#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace attend {

// Starts threads of `work` until there are `count`. Error where the system refuses one; before,
// `stop` has those that run end, and joins them: a thread that is destroyed while it runs would end
// the program.
void start_threads(std::vector<std::thread>& threads, size_t count,
                   const std::function<void()>& work, const std::function<void()>& stop);

}  // namespace attend
