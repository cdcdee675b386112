#include "attend/kernels/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace attend::kernels {
namespace {

int most_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

void run_each(int count, const void* work, void (*run)(const void* work)) {
#ifdef _OPENMP
#pragma omp parallel num_threads(count) if (count > 1)
  run(work);
#else
  // The first call of a loop takes all of its tasks.
  for (int i = 0; i < count; ++i) run(work);
#endif
}

Threads& chosen_threads() {
  static Threads threads = default_threads();
  return threads;
}

}  // namespace

Threads default_threads() { return {most_threads, run_each}; }

void set_threads(const Threads& threads) { chosen_threads() = threads; }

const Threads& current_threads() { return chosen_threads(); }

}  // namespace attend::kernels
