#pragma once

#include <cstdint>

namespace attend {

// Bytes that this process may come to use: the machine's memory, or less where a limit of the
// process (ulimit -v) or of its control group says so.
int64_t memory_limit();

// For the start of a program that trains: memory that was freed stays with the process. Tensors of
// megabytes come and go at every step; given back to the system each time, their pages are cleared
// anew, which takes a tenth of the time.
void keep_memory();

}  // namespace attend
