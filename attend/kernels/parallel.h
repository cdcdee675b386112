#pragma once

// The parallel loop of the kernels.

namespace attend::kernels {

// Source of threads. A program that has its own threads replaces OpenMP by them, because two
// libraries of threads in one process compete for the cores.
struct Threads {
  // Number of threads of a call with threads = 0; at least 1.
  int (*most)();
  // Calls run(work) `count` times, on different threads if possible, and returns when all calls
  // have ended. The calls may also follow each other on one thread. count is at least 1; run does
  // not throw.
  void (*each)(int count, const void* work, void (*run)(const void* work));
};

// Threads of OpenMP; the calling thread only, if the kernels were compiled without OpenMP.
Threads default_threads();

// Sets the threads of every later call. Not safe while a kernel runs.
void set_threads(const Threads& threads);

const Threads& current_threads();

}  // namespace attend::kernels
