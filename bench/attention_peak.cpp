#include <fmt/format.h>

#include <cmath>

#include "attend/kernels/peak.h"
#include "bench/attention_bench.h"
#include "bench/kernel_inputs.h"
#include "bench/measure.h"
#include "bench/operator.h"

namespace attend::bench {
namespace {

using kernels::Family;
using kernels::Scope;
using kernels::Shape;

Shape square(int64_t length, int64_t depth) { return {1, 1, 1, length, length, depth, depth}; }

struct PeakCase {
  Family family;
  std::string series;
  int64_t length, depth;
  std::optional<Bar> forward, backward;
  bool composed;  // also time LibTorch's path
};

void run_peak_case(Bench& bench, const PeakCase& c, const Target& target) {
  const OnTarget chosen(target);
  const Shape shape = square(c.length, c.depth);
  KernelInputs<float> inputs(shape, c.family);
  inputs.checked_context();
  std::vector<Probe> probes = {kernels::multiply_add_peak,
                               seconds_of(1, [&] { inputs.forward(1); }),
                               seconds_of(1, [&] { inputs.backward(1); })};
  if (c.composed) {
    const OperatorRuns runs = operator_runs(shape, "scaled_dot", Path::composed);
    probes.push_back(seconds_of(1, runs.forward));
    probes.push_back(seconds_of(1, runs.forward_and_backward));
  }
  const Rounds rounds = take_turns(probes, bench.seconds);
  const auto fraction = [&](size_t probe, double operations) {
    return rounds.median([=](const Round& r) { return operations / r[probe] / r[0]; });
  };
  const double forward = fraction(1, forward_operations(shape));
  const double backward = fraction(2, backward_operations(shape));
  bench.add("forward, fraction of the peak", forward, c.forward);
  bench.add("backward, fraction of the peak", backward, c.backward);
  bench.add("multiply-add peak of the core, GFLOP/s", rounds.median(0) * 1e-9);
  if (c.composed) {
    bench.add_over_composed("forward, ", rounds.ratio(3, 1));
    bench.add_over_composed("both, ",
                            rounds.median([](const Round& r) { return r[4] / (r[1] + r[2]); }));
  }
  if (c.series.empty()) return;
  bench.forward_samples[c.series].push_back({c.length, forward});
  bench.backward_samples[c.series].push_back({c.length, backward});
}

void add_dot_cases(std::vector<Case>& cases) {
  const std::vector<Target> targets = measured_targets();
  for (const Target& target : targets) {
    const bool best = &target == targets.data();
    for (const int64_t depth : {64, 128}) {
      const std::string series = best ? fmt::format("dot, depth {}", depth) : "";
      for (const int64_t length : {512, 1024, 2048, 4096, 8192}) {
        const PeakCase c{Family::dot,
                         series,
                         length,
                         depth,
                         at_least(depth == 64 ? 0.75 : 0.80),
                         at_least(depth == 64 ? 0.65 : 0.70),
                         best && length <= 4096};
        cases.push_back(
            {fmt::format("scaled dot, d={}, T={}, one thread, {}", depth, length, target.name),
             best && depth == 64 && (length == 512 || length == 2048),
             [=](Bench& bench) { run_peak_case(bench, c, target); }});
      }
    }
  }
}

// The other families, for the picture: their work is not only multiply-adds.
void add_picture_cases(std::vector<Case>& cases) {
  const struct {
    Family family;
    std::string name;
    int64_t depth;
  } families[] = {{Family::additive, "additive", 64},
                  {Family::additive, "additive", 128},
                  {Family::squared_distance, "squared distance", 64},
                  {Family::absolute_distance, "absolute distance", 64}};
  const Target target = measured_targets()[0];
  for (const auto& [family, name, depth] : families) {
    for (const int64_t length : {512, 1024, 2048, 4096}) {
      const PeakCase c{family, fmt::format("{}, depth {}", name, depth), length, depth, {}, {},
                       false};
      cases.push_back(
          {fmt::format("picture: {}, d={}, T={}, one thread, {}", name, depth, length, target.name),
           false, [=](Bench& bench) { run_peak_case(bench, c, target); }});
    }
  }
}

void run_causal_case(Bench& bench, int64_t length) {
  const Shape shape = square(length, 64);
  KernelInputs<float> full(shape), causal(shape, Family::dot, kernels::causal());
  full.forward(1);
  causal.forward(1);
  const Rounds rounds = take_turns(
      {seconds_of(1, [&] { full.forward(1); }), seconds_of(1, [&] { causal.forward(1); }),
       seconds_of(1, [&] { full.backward(1); }), seconds_of(1, [&] { causal.backward(1); })},
      bench.seconds);
  bench.add("forward, fraction of the full cost", rounds.ratio(1, 0), at_most(0.56));
  bench.add("backward, fraction of the full cost", rounds.ratio(3, 2), at_most(0.56));
}

void multiply_adds_on_two_threads() {
#pragma omp parallel num_threads(2)
  kernels::multiply_add_peak();
}

void run_threads_case(Bench& bench) {
  KernelInputs<float> inputs(square(4096, 64));
  // Both use wall-clock time, so that the ratio compares the same kind of time.
  const auto wall = [](std::function<void()> run) { return seconds_of(2, std::move(run)); };
  const Rounds rounds =
      take_turns({wall([&] { inputs.forward(1); }), wall([&] { inputs.forward(2); }),
                  wall([&] { inputs.backward(1); }), wall([&] { inputs.backward(2); }),
                  wall([] { kernels::multiply_add_peak(); }), wall(multiply_adds_on_two_threads)},
                 2 * bench.seconds);
  bench.add("forward, two threads over one", rounds.ratio(0, 1), at_least(1.8));
  bench.add("backward, two threads over one", rounds.ratio(2, 3), at_least(1.7));
  // Less than 2 if the machine is busy, or if active cores slow each other down.
  bench.add("multiply-adds in registers, two threads over one", 2 * rounds.ratio(4, 5));
}

const Scope& window() {
  static const Scope scope{{{kernels::Window{.left = 256, .right = 256}}}};
  return scope;
}

void run_window_case(Bench& bench) {
  const Shape shape = square(16384, 64);
  KernelInputs<float> full(shape), windowed(shape, Family::dot, window());
  full.forward(1);
  windowed.forward(1);
  const Rounds rounds = take_turns(
      {seconds_of(1, [&] { full.forward(1); }), seconds_of(1, [&] { windowed.forward(1); }),
       seconds_of(1, [&] { full.backward(1); }), seconds_of(1, [&] { windowed.backward(1); })},
      bench.seconds);
  bench.add("forward, fraction of the full cost", rounds.ratio(1, 0), at_most(1.0 / 25));
  bench.add("backward, fraction of the full cost", rounds.ratio(3, 2), at_most(1.0 / 25));
}

void run_slope_case(Bench& bench) {
  KernelInputs<float> small(square(4096, 64), Family::dot, window());
  KernelInputs<float> large(square(65536, 64), Family::dot, window());
  small.forward(1);
  large.forward(1);
  const Rounds rounds = take_turns(
      {seconds_of(1, [&] { small.forward(1); }), seconds_of(1, [&] { large.forward(1); }),
       seconds_of(1, [&] { small.backward(1); }), seconds_of(1, [&] { large.backward(1); })},
      bench.seconds);
  // Slope of log seconds over log length: 1 is linear, 2 quadratic.
  const auto slope = [&](size_t from, size_t to) {
    return std::log(rounds.ratio(to, from)) / std::log(65536.0 / 4096);
  };
  bench.add("forward, exponent of the length", slope(0, 1), at_most(1.05));
  bench.add("backward, exponent of the length", slope(2, 3), at_most(1.05));
}

}  // namespace

void add_peak_cases(std::vector<Case>& cases) {
  add_dot_cases(cases);
  for (const int64_t length : {1024, 2048, 4096}) {
    cases.push_back({fmt::format("causal, d=64, T={}", length), length == 1024,
                     [=](Bench& bench) { run_causal_case(bench, length); }});
  }
  cases.push_back({"two threads, batch 1, one head, d=64, T=4096", true, run_threads_case});
  cases.push_back({"window 256 each way, d=64, T=16384", false, run_window_case});
  cases.push_back({"window 256 each way, d=64, T=4096 to 65536", true, run_slope_case});
  add_picture_cases(cases);
}

}  // namespace attend::bench
