#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "attend/kernels/peak.h"
#include "bench/attention_bench.h"
#include "bench/kernel_inputs.h"
#include "bench/measure.h"
#include "bench/operator.h"
#include "bench/peak.h"

namespace attend::bench {
namespace {

using kernels::Family;
using kernels::Shape;

constexpr Shape kShape{1, 1, 1, 1024, 1024, 128, 128};

void run_cycles_case(Bench& bench, const Target& target) {
  const OnTarget chosen(target);
  const bool wide = target.name == "AVX-512";
  KernelInputs<float> inputs(kShape, Family::additive);
  inputs.checked_context();
  const Rounds rounds =
      take_turns({core_frequency, seconds_of(1, [&] { inputs.forward(1); }),
                  seconds_of(1, [&] { inputs.backward(1); }), kernels::multiply_add_peak},
                 2 * bench.seconds);
  const double triples = pairs(kShape) * static_cast<double>(kShape.depth);
  const auto cycles = [&](size_t probe) {
    return rounds.median([=](const Round& r) { return r[probe] * r[0] / triples; });
  };
  bench.add("forward, cycles a (query, key, depth) triple", cycles(1), at_most(wide ? 0.25 : 0.35));
  bench.add("backward, cycles a (query, key, depth) triple", cycles(2),
            wide ? std::optional(at_most(0.55)) : std::nullopt);
  bench.add("frequency of the core, GHz", rounds.median(0) * 1e-9);
  bench.add("multiply-add peak of the core, GFLOP/s", rounds.median(3) * 1e-9);
}

void run_composed_case(Bench& bench) {
  KernelInputs<float> inputs(kShape, Family::additive);
  const OperatorRuns composed = operator_runs(kShape, "additive", Path::composed);
  const Rounds rounds = take_turns(
      {seconds_of(1, [&] { inputs.forward(1); }), seconds_of(1, [&] { inputs.backward(1); }),
       seconds_of(1, composed.forward), seconds_of(1, composed.forward_and_backward)},
      bench.seconds);
  bench.add_over_composed("forward, ", rounds.ratio(2, 0), at_least(40));
  bench.add_over_composed(
      "both, ", rounds.median([](const Round& r) { return r[3] / (r[0] + r[1]); }), at_least(25));
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

// Above inputs and outputs, which are already in memory.
double megabytes_of_both_passes() {
  KernelInputs<float> inputs({1, 1, 1, 16384, 16384, 128, 128}, Family::additive);
  const double before = peak_megabytes();
  inputs.forward(1);
  inputs.backward(1);
  return peak_megabytes() - before;
}

// Uses a separate process, since the peak of this one may be anything.
void run_memory_case(Bench& bench) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe to the process that is measured");
  const pid_t child = fork();
  if (child == 0) {
    const double megabytes = megabytes_of_both_passes();
    _exit(write(ends[1], &megabytes, sizeof megabytes) == sizeof megabytes ? 0 : 1);
  }
  close(ends[1]);
  double megabytes = 0;
  const bool received = read(ends[0], &megabytes, sizeof megabytes) == sizeof megabytes;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  if (!received) throw std::runtime_error("the measured process failed");
  bench.add("both, MB above inputs and outputs", megabytes, at_most(300));
}

}  // namespace

void add_additive_cases(std::vector<Case>& cases) {
  for (const Target& target : measured_targets()) {
    cases.push_back({fmt::format("additive, d=128, T=1024, one thread, {}", target.name), true,
                     [=](Bench& bench) { run_cycles_case(bench, target); }});
  }
  cases.push_back(
      {"additive, d=128, T=1024, one thread, against composed", false, run_composed_case});
  cases.push_back({"additive, d=128, T=16384, memory", false, run_memory_case});
}

}  // namespace attend::bench
