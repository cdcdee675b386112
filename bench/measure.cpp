#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "attend/base/error.h"
#include "attend/machine/blas.h"

namespace attend::bench {
namespace {

double now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

}  // namespace

std::string prepare_blas(char** argv) {
  choose_blas_kernels(argv);
  std::string warning = slow_products(loaded_blas(), measure_products());
  if (!warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
  return warning;
}

Probe seconds_of(int threads, std::function<void()> run) {
  const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  // Short runs are repeated until the time to read the clock is negligible.
  constexpr double kShortest = 2e-3;
  return [clock, run = std::move(run), runs = 0]() mutable {
    if (runs == 0) {
      const double start = now(clock), process_start = now(CLOCK_PROCESS_CPUTIME_ID);
      run();
      const double once = std::max(1e-9, now(clock) - start);
      if (clock == CLOCK_THREAD_CPUTIME_ID &&
          once < 0.01 * (now(CLOCK_PROCESS_CPUTIME_ID) - process_start))
        fail("[seconds_of] other threads did the work of a run on one thread");
      runs = static_cast<int>(std::ceil(std::min(1e5, kShortest / once)));
    }
    const double start = now(clock);
    for (int i = 0; i < runs; ++i) run();
    return (now(clock) - start) / runs;
  };
}

double Rounds::median(size_t probe) const {
  return median([probe](const Round& round) { return round[probe]; });
}

double Rounds::median(const std::function<double(const Round&)>& figure) const {
  std::vector<double> values;
  values.reserve(rounds_.size());
  for (const Round& round : rounds_) values.push_back(figure(round));
  return middle(std::move(values));
}

double Rounds::ratio(size_t numerator, size_t denominator) const {
  return median([=](const Round& round) { return round[numerator] / round[denominator]; });
}

Rounds take_turns(const std::vector<Probe>& probes, double seconds) {
  constexpr size_t kFewest = 3, kMost = 200;
  const auto turn = [&] {
    Round round;
    round.reserve(probes.size());
    for (const Probe& probe : probes) round.push_back(probe());
    return round;
  };
  turn();
  std::vector<Round> rounds;
  rounds.reserve(kMost);
  const double end = now(CLOCK_MONOTONIC) + seconds * static_cast<double>(probes.size());
  while (rounds.size() < kFewest || (rounds.size() < kMost && now(CLOCK_MONOTONIC) < end)) {
    rounds.push_back(turn());
  }
  return Rounds(std::move(rounds));
}

}  // namespace attend::bench
