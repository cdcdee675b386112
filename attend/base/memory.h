#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

// Returns the number of bytes that this process may use: the machine's memory, or less if the
// process (ulimit -v), its control group or a parent group has a lower limit.
int64_t memory_limit();

// Returns the lowest memory limit of the control groups in `groups`, a text like /proc/self/cgroup,
// and of their parents. Reads groups of version 1 and 2 below the folder `mounted`. Returns the
// largest number without a limit.
int64_t group_memory_limit(std::string_view groups, const std::string& mounted);

// Keeps freed memory in the process; call this at the start of a program that trains. Each step
// allocates and frees tensors of megabytes. If their memory returned to the system, clearing its
// pages again would take a tenth of the time.
void keep_memory();

// Also keeps freed arrays of more than 32 MB, which otherwise return to the system at once. Call
// this only if all large arrays are activations and gradients: buffers of weights that are read
// once would stay resident.
void keep_large_memory();

}  // namespace attend
