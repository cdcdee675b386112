#include <fmt/format.h>

#include <optional>

#include "attend/kernels/bfloat16_products.h"
#include "bench/attention_bench.h"
#include "bench/kernel_inputs.h"
#include "bench/measure.h"

namespace attend::bench {
namespace {

using kernels::BFloat16;
using kernels::Shape;

// bf16 against fp32 in one run. The bars apply only if bf16 products are available.
void run_bf16_case(Bench& bench, int64_t length, int64_t depth) {
  const Shape shape{1, 1, 1, length, length, depth, depth};
  KernelInputs<float> wide(shape);
  KernelInputs<BFloat16> narrow(shape);
  wide.checked_context();
  const kernels::BFloat16Kernels* const products = kernels::bfloat16_kernels();
  const Rounds rounds = take_turns(
      {seconds_of(1, [&] { wide.forward(1); }), seconds_of(1, [&] { wide.backward(1); }),
       seconds_of(1, [&] { narrow.forward(1); }), seconds_of(1, [&] { narrow.backward(1); })},
      bench.seconds);
  const auto bar = [&](double value) {
    return products != nullptr ? std::optional<Bar>(at_least(value)) : std::nullopt;
  };
  const std::string by = products != nullptr ? products->name : "floats";
  bench.add(fmt::format("forward by {}, times as fast as fp32", by), rounds.ratio(0, 2), bar(1.6));
  bench.add(fmt::format("both by {}, times as fast as fp32", by),
            rounds.median([](const Round& r) { return (r[0] + r[1]) / (r[2] + r[3]); }), bar(1.4));
  bench.add("forward, ms", 1e3 * rounds.median(2));
  bench.add("both, ms", 1e3 * rounds.median([](const Round& r) { return r[2] + r[3]; }));
}

}  // namespace

void add_bf16_cases(std::vector<Case>& cases) {
  for (const int64_t depth : {64, 128}) {
    for (const int64_t length : {512, 1024, 2048, 4096, 8192}) {
      cases.push_back({fmt::format("dot, bf16, d={}, T={}", depth, length), length == 1024,
                       [=](Bench& bench) { run_bf16_case(bench, length, depth); }});
    }
  }
}

}  // namespace attend::bench
