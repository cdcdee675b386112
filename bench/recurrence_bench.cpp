// Linear recurrences: share of the multiply-add peak, growth with the length, threads, memory, one
// step of decoding, and the length from which a recurrence is cheaper than exact attention:
// `./dev bench recurrence --help`. tools/peers.py --part recurrence compares with other libraries.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>
#include <torch/autograd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>

#include "attend/base/memory.h"
#include "attend/kernels/peak.h"
#include "attend/ops/attention.h"
#include "attend/ops/recurrence.h"
#include "bench/measure.h"
#include "bench/report.h"

namespace attend::bench {
namespace {

using at::Tensor;

constexpr int64_t heads = 16;

// A row of the table with random inputs of a batch of 1.
struct Problem {
  Tensor query, key, value, upstream;
  RecurrenceSpec spec;

  Problem(const RecurrenceRow& row, int64_t length, int64_t depth) {
    const auto normal = [&] { return at::randn({1, heads, length, depth}).requires_grad_(); };
    query = normal();
    key = normal();
    value = normal();
    upstream = at::randn({1, heads, length, depth});
    if (row.decay == DecayKind::head) spec.decay = at::rand({heads}).mul_(-0.1);
    if (row.decay == DecayKind::token) spec.decay = at::rand({1, heads, length}).mul_(-0.1);
    if (row.decay == DecayKind::row) spec.decay = at::rand({1, heads, length, depth}).mul_(-0.1);
    if (spec.decay.defined()) spec.decay.requires_grad_();
    if (row.strength) spec.strength = at::rand({1, heads, length}).requires_grad_();
    if (row.bonus) spec.bonus = at::randn({heads, depth}).requires_grad_();
    spec.delta = row.delta;
    spec.l2_normalise = row.unit_keys;
  }

  Tensor forward() const { return linear_recurrence(query, key, value, spec).output; }

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all = {query, key, value};
    if (spec.decay.defined()) all.push_back(spec.decay);
    if (spec.strength.defined()) all.push_back(spec.strength);
    if (spec.bonus.defined()) all.push_back(spec.bonus);
    return all;
  }

  void both() const { torch::autograd::grad({forward()}, inputs(), {upstream}); }

  void only_forward() const {
    const at::NoGradGuard no_gradient;
    forward();
  }
};

// Multiply-adds of the products with the state, as two operations each. Backward computes the
// states again by one product.
double operations(const RecurrenceRow& row, int64_t length, int64_t depth, bool backward) {
  const double products = backward ? (row.delta ? 7 : 5) : (row.delta ? 3 : 2);
  return 2 * products * static_cast<double>(heads * length * depth * depth);
}

void measure_peak(Report& report, double seconds) {
  for (const RecurrenceRow& row : recurrence_table())
    for (const int64_t depth : {64, 128}) {
      const Problem p(row, 2048, depth);
      const Rounds rounds =
          take_turns({seconds_of(1, [&] { p.only_forward(); }), seconds_of(1, [&] { p.both(); }),
                      kernels::multiply_add_peak},
                     seconds);
      const std::string name = fmt::format("{}, depth {}, 2048", row.name, depth);
      report.add(name, "forward, ms", 1e3 * rounds.median(0));
      report.add(name, "both, ms", 1e3 * rounds.median(1));
      const auto share = [&](size_t probe, double work) {
        return rounds.median([=](const Round& r) { return work / r[probe] / r[2]; });
      };
      const double forward = operations(row, 2048, depth, false);
      report.add(name, "forward, share of the peak", share(0, forward));
      report.add(name, "both, share of the peak",
                 share(1, forward + operations(row, 2048, depth, true)));
    }
}

void measure_lengths(Report& report, double seconds, int64_t longest) {
  const RecurrenceRow& row = recurrence_row("gated_delta");
  std::vector<std::pair<double, double>> forward, both;
  for (int64_t length = 1024; length <= longest; length *= 4) {
    const Problem p(row, length, 64);
    const Rounds rounds = take_turns(
        {seconds_of(1, [&] { p.only_forward(); }), seconds_of(1, [&] { p.both(); })}, seconds);
    const auto tokens = static_cast<double>(length);
    forward.emplace_back(tokens, rounds.median(0));
    both.emplace_back(tokens, rounds.median(1));
    report.add("gated_delta, depth 64", fmt::format("both, us a token, T={}", length),
               1e6 * rounds.median(1) / tokens);
  }
  report.add("gated_delta, depth 64", "forward, exponent of the length", exponent(forward),
             ReportBar{1.03, false});
  report.add("gated_delta, depth 64", "both, exponent of the length", exponent(both),
             ReportBar{1.03, false});
}

void measure_threads(Report& report, double seconds) {
  const Problem p(recurrence_row("gated_delta"), 2048, 64);
  const auto timed = [&](int threads, std::function<void()> run) {
    // Two threads are timed by the clock; one is, too, for the ratio. at::set_num_threads would
    // start new threads of another pool, which spin during the run.
    return seconds_of(2, [threads, run] {
      omp_set_num_threads(threads);
      run();
    });
  };
  const Rounds rounds =
      take_turns({timed(1, [&] { p.only_forward(); }), timed(2, [&] { p.only_forward(); }),
                  timed(1, [&] { p.both(); }), timed(2, [&] { p.both(); })},
                 seconds);
  omp_set_num_threads(1);
  report.add("gated_delta, batch 1", "forward, two threads over one", rounds.ratio(0, 1),
             ReportBar{1.8, true});
  report.add("gated_delta, batch 1", "both, two threads over one", rounds.ratio(2, 3),
             ReportBar{1.8, true});
}

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// Runs first: the peak of the process grows only by what this needs.
void measure_memory(Report& report) {
  const Problem p(recurrence_row("gated_delta"), 8192, 128);
  double numbers = static_cast<double>(p.value.numel());  // the output
  for (const Tensor& x : p.inputs()) numbers += 2 * static_cast<double>(x.numel());
  numbers += static_cast<double>(p.upstream.numel());
  const double before = peak_bytes();
  p.both();
  // Inputs and the gradient of the output existed before.
  double own = 4 * (numbers - static_cast<double>(p.upstream.numel()));
  for (const Tensor& x : p.inputs()) own -= 4 * static_cast<double>(x.numel());
  report.add("gated_delta, depth 128, 8192", "both, memory over inputs, outputs, gradients",
             (peak_bytes() - before - own) / (4 * numbers) + 1, ReportBar{1.5, false});
}

void measure_step(Report& report, double seconds) {
  for (const int64_t depth : {64, 128}) {
    Problem p(recurrence_row("gated_delta"), 1, depth);
    const at::NoGradGuard no_gradient;
    p.spec.initial = at::zeros({1, heads, depth, depth});
    const Rounds rounds = take_turns({seconds_of(1, [&] { p.forward(); })}, seconds);
    report.add(fmt::format("gated_delta, depth {}", depth), "one step, us", 1e6 * rounds.median(0));
  }
}

// The shortest length from which forward and backward are cheaper than exact causal attention.
void measure_crossing(Report& report, double seconds) {
  double crossing = 0;
  for (int64_t length = 4096; length >= 64; length /= 2) {
    const Problem p(recurrence_row("gated_delta"), length, 64);
    const Rounds rounds = take_turns(
        {seconds_of(1, [&] { p.both(); }),
         seconds_of(1,
                    [&] {
                      const Tensor context =
                          attention(p.query, p.key, p.value, {.scope = causal()}).context;
                      torch::autograd::grad({context}, {p.query, p.key, p.value}, {p.upstream});
                    })},
        seconds);
    const double ratio = rounds.ratio(1, 0);
    report.add("gated_delta, depth 64", fmt::format("both, over exact attention, T={}", length),
               ratio);
    if (ratio < 1) break;
    crossing = static_cast<double>(length);
  }
  report.add("gated_delta, depth 64", "cheaper than exact attention from", crossing);
}

}  // namespace
}  // namespace attend::bench

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  using namespace attend::bench;
  CLI::App app{
      "Measures linear recurrences of 16 heads in float32: the share of the multiply-add peak, "
      "counting the products with the state; the exponent of the length; threads; memory; one "
      "decoding step; and the length from which they are cheaper than exact attention. Figures are "
      "medians. Alternatives take turns on one thread, timed by its processor time."};
  bool quick = false, json = false;
  app.add_flag("--quick", quick, "shorter sequences and fewer turns");
  app.add_flag("--json", json, "one array of {case, metric, value, bar, met}");
  CLI11_PARSE(app, argc, argv);
  attend::keep_memory();  // `attend train` does the same
  attend::keep_large_memory();
  at::set_num_threads(1);
  at::manual_seed(1);
  Report report(json);
  const double seconds = quick ? 0.1 : 0.5;
  measure_memory(report);
  measure_peak(report, seconds);
  measure_lengths(report, seconds, quick ? 16'384 : 65'536);
  measure_threads(report, seconds);
  measure_step(report, seconds);
  measure_crossing(report, seconds);
}
