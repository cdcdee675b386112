#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

// Bytes that this process may use: the machine's memory, or less where a limit of the process
// (ulimit -v), of its control group or of one around that says so.
int64_t memory_limit();

// The least limit of the control groups that a text such as /proc/self/cgroup names, and of those
// around them, of version 1 or 2, below the folder where they are mounted; the largest number where
// there is none.
int64_t group_memory_limit(std::string_view groups, const std::string& mounted);

// For the start of a program that trains: memory that was freed stays with the process. Each step
// makes and frees tensors of megabytes; if their memory returned to the system, it would clear
// their pages anew each time, which takes a tenth of the time.
void keep_memory();

}  // namespace attend
