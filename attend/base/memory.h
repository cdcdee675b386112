#pragma once

#include <cstdint>

namespace attend {

// Bytes that this process may come to use: the machine's memory, or less where a limit of the
// process (ulimit -v) or of its control group says so.
int64_t memory_limit();

}  // namespace attend
