#include <omp.h>

#include <memory>
#include <optional>
#include <vector>

#include "bench/attention_bench.h"
#include "bench/kernel_inputs.h"
#include "bench/measure.h"
#include "bench/operator.h"
#include "bench/peak.h"

namespace attend::bench {
namespace {

constexpr kernels::Shape kShape{1, 8, 8, 1, 8192, 64, 64};
// The same keys and values, with four query heads per key head.
constexpr kernels::Shape kGrouped{1, 32, 8, 1, 8192, 64, 64};

// Keys and values are read once per step and are not in a processor cache then, as in a model with
// many layers. Uses several caches in turn, more than the last cache level holds.
template <class S>
class Caches {
 public:
  explicit Caches(const kernels::Shape& shape = kShape) {
    constexpr int64_t kTogether = 128 << 20;
    for (int64_t held = 0; held < kTogether; held += 2 * kBytes) {
      caches_.push_back(std::make_unique<KernelInputs<S>>(shape));
    }
  }

  static constexpr int64_t kBytes =  // size of the keys, or of the values
      kShape.key_heads * kShape.keys * kShape.depth * static_cast<int64_t>(sizeof(S));

  size_t count() const { return caches_.size(); }

  void decode(int threads) { next().forward(threads); }

  // Reads and adds up the same bytes.
  void read(int threads) {
    const auto& problem = next().problem;
    const auto* keys = reinterpret_cast<const char*>(problem.key.data);
    const auto* values = reinterpret_cast<const char*>(problem.value.data);
    const int64_t part = kBytes / threads;
    uint64_t sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
      const int64_t start = part * omp_get_thread_num();
      sum += read_all(keys + start, part) + read_all(values + start, part);
    }
    volatile uint64_t keep = sum;
    (void)keep;
  }

 private:
  KernelInputs<S>& next() { return *caches_[turn_++ % caches_.size()]; }

  std::vector<std::unique_ptr<KernelInputs<S>>> caches_;
  size_t turn_ = 0;
};

void run_bandwidth_case(Bench& bench, const kernels::Shape& shape, int threads,
                        std::optional<Bar> bar) {
  Caches<float> caches(shape);
  std::vector<OperatorRuns> composed;
  composed.reserve(caches.count());
  for (size_t n = 0; n < caches.count(); ++n) {
    composed.push_back(operator_runs(shape, "scaled_dot", Path::composed));
  }
  size_t turn = 0;
  set_libtorch_threads(threads);
  const Rounds rounds =
      take_turns({seconds_of(threads, [&] { caches.read(threads); }),
                  seconds_of(threads, [&] { caches.decode(threads); }),
                  seconds_of(threads, [&] { composed[turn++ % composed.size()].forward(); })},
                 4 * bench.seconds);
  set_libtorch_threads(1);
  bench.add("fraction of the memory bandwidth", rounds.ratio(0, 1), bar);
  bench.add("memory bandwidth of these threads, GB/s",
            2e-9 * static_cast<double>(caches.kBytes) / rounds.median(0));
  bench.add_over_composed("", rounds.ratio(2, 1));
}

// Both formats take turns over caches of equal size, so that neither stays in a processor cache.
template <class S>
void run_storage_case(Bench& bench, std::optional<Bar> bar) {
  constexpr int kThreads = 2;
  Caches<float> wide;
  Caches<S> narrow;
  const Rounds rounds = take_turns({seconds_of(kThreads, [&] { wide.decode(kThreads); }),
                                    seconds_of(kThreads, [&] { narrow.decode(kThreads); }),
                                    seconds_of(kThreads, [&] { narrow.read(kThreads); })},
                                   2 * bench.seconds);
  bench.add("times as fast as fp32", rounds.ratio(0, 1), bar);
  bench.add("fraction of the memory bandwidth", rounds.ratio(2, 1));
}

}  // namespace

void add_decode_cases(std::vector<Case>& cases) {
  cases.push_back({"decode, 1 query, 8192 keys, 8 heads, d=64, one thread", true,
                   [](Bench& bench) { run_bandwidth_case(bench, kShape, 1, at_least(0.9)); }});
  cases.push_back({"decode, 1 query, 8192 keys, 8 heads, d=64, two threads", true,
                   [](Bench& bench) { run_bandwidth_case(bench, kShape, 2, at_least(0.7)); }});
  cases.push_back({"decode, the same for 32 heads of queries, two threads", false,
                   [](Bench& bench) { run_bandwidth_case(bench, kGrouped, 2, {}); }});
  cases.push_back({"decode, bf16 storage", true, [](Bench& bench) {
                     run_storage_case<kernels::BFloat16>(bench, at_least(1.7));
                   }});
  cases.push_back({"decode, fp16 storage", false,
                   [](Bench& bench) { run_storage_case<kernels::Float16>(bench, {}); }});
}

}  // namespace attend::bench
