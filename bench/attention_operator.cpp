#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "attend/kernels/peak.h"
#include "bench/attention_bench.h"
#include "bench/kernel_inputs.h"
#include "bench/measure.h"
#include "bench/operator.h"
#include "bench/peak.h"

namespace attend::bench {
namespace {

using kernels::Shape;

void run_mapped_case(Bench& bench, const std::string& score) {
  const Shape shape{1, 4, 4, 1024, 1024, 64, 64};
  const OperatorRuns plain = operator_runs(shape, "scaled_dot", Path::automatic);
  const OperatorRuns other = operator_runs(shape, score, Path::automatic);
  const Rounds rounds = take_turns(
      {seconds_of(1, plain.forward), seconds_of(1, other.forward),
       seconds_of(1, plain.forward_and_backward), seconds_of(1, other.forward_and_backward)},
      bench.seconds);
  bench.add("forward, times the cost of scaled dot", rounds.ratio(1, 0), at_most(1.08));
  bench.add("both, times the cost of scaled dot", rounds.ratio(3, 2), at_most(1.08));
}

void run_short_case(Bench& bench, int64_t length, int64_t depth) {
  const Shape shape{64, 4, 4, length, length, depth, depth};
  const OperatorRuns fused = operator_runs(shape, "scaled_dot", Path::automatic);
  const OperatorRuns composed = operator_runs(shape, "scaled_dot", Path::composed);
  KernelInputs<float> inputs(shape);
  // Forward touches queries, keys, values and contexts; backward touches these, the gradient of the
  // contexts and three gradients of its own.
  const int64_t numbers = 12 * shape.batch * shape.heads * length * depth;
  const std::vector<float> passed(static_cast<size_t>(numbers), 1.0F);
  const int64_t bytes = numbers * static_cast<int64_t>(sizeof(float));
  const Rounds rounds = take_turns(
      {seconds_of(1, fused.forward_and_backward), seconds_of(1, composed.forward_and_backward),
       seconds_of(1,
                  [&] {
                    inputs.forward(1);
                    inputs.backward(1);
                  }),
       kernels::multiply_add_peak,
       seconds_of(1,
                  [&] {
                    volatile uint64_t keep = read_all(passed.data(), bytes);
                    (void)keep;
                  })},
      bench.seconds);
  bench.add_over_composed("both, ", rounds.ratio(1, 0), at_least(1.5));
  // The difference is the overhead of the operator and its tensors.
  bench.add_over_composed("both, only the kernels, ", rounds.ratio(1, 2));
  const double operations = forward_operations(shape) + backward_operations(shape);
  bench.add("both, only the kernels, fraction of the peak",
            rounds.median([=](const Round& r) { return operations / r[2] / r[3]; }));
  bench.add("time to read the same bytes over time of the kernels", rounds.ratio(4, 2));
}

// Absolute times, which tools/wheel_bars.py compares with the times of the Python package.
void run_call_case(Bench& bench, const std::string& score, const Shape& shape) {
  const OperatorRuns runs = operator_runs(shape, score, Path::automatic);
  const Rounds rounds = take_turns(
      {seconds_of(1, runs.forward), seconds_of(1, runs.forward_and_backward)}, bench.seconds);
  bench.add("forward, us", rounds.median(0) * 1e6);
  bench.add("both, us", rounds.median(1) * 1e6);
}

}  // namespace

void add_operator_cases(std::vector<Case>& cases) {
  const std::vector<std::pair<std::string, Shape>> calls = {
      {"scaled_dot", {1, 1, 1, 1, 1, 1, 1}},
      {"scaled_dot", {64, 4, 4, 32, 32, 32, 32}},
      {"scaled_dot", {1, 8, 8, 1024, 1024, 64, 64}},
      {"scaled_dot", {1, 8, 2, 1024, 1024, 128, 128}},
      {"additive", {1, 1, 1, 1024, 1024, 128, 128}}};
  for (const auto& [score, shape] : calls)
    cases.push_back(
        {fmt::format("operator, {}, batch {}, {} heads of {}, T={}, d={}", score, shape.batch,
                     shape.heads, shape.key_heads, shape.keys, shape.depth),
         false, [=](Bench& bench) { run_call_case(bench, score, shape); }});
  for (const std::string score : {"general", "cosine"}) {
    cases.push_back({fmt::format("{}, 4 heads, d=64, T=1024", score), true,
                     [=](Bench& bench) { run_mapped_case(bench, score); }});
  }
  for (const int64_t length : {16, 32, 64}) {
    for (const int64_t depth : {32, 64}) {
      cases.push_back({fmt::format("short, batch 64, 4 heads, T={}, d={}", length, depth), true,
                       [=](Bench& bench) { run_short_case(bench, length, depth); }});
    }
  }
}

}  // namespace attend::bench
