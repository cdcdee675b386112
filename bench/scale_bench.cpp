// Training in two processes on this machine: the time of their all-reduce, its share of a step,
// their speed compared with one process of two replicas, and a prediction for more machines.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <optional>

#include "attend/models/pair_model.h"
#include "attend/models/transformer_config.h"
#include "attend/parallel/process_world.h"
#include "attend/runs/child_processes.h"
#include "attend/train/trainer.h"
#include "bench/measure.h"
#include "bench/training_data.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t batch_tokens = 4096;
constexpr int64_t codes = 10000;
constexpr double share_bar = 0.15, rate_bar = 0.95;

struct Options {
  double seconds = 8;  // per turn
  int turns = 3;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Measures how long processes wait for sums, including for the other process. Also measures how
// early the sums of gradients begin before the wait: backward can hide that time.
class TimedWorld : public Communicator {
 public:
  explicit TimedWorld(Communicator& world) : world_(world) {}

  int64_t rank() const override { return world_.rank(); }
  int64_t size() const override { return world_.size(); }
  std::function<void()> begin_sum(at::Tensor& tensor) override {
    if (tensor.scalar_type() == at::kFloat) {  // gradients
      if (!first_begun_) {
        first_begun_ = Clock::now();
        bytes_.clear();
      }
      bytes_.push_back(static_cast<double>(tensor.nbytes()));
    }
    return [this, wait = world_.begin_sum(tensor)] {
      const auto start = Clock::now();
      if (first_begun_) ahead_.push_back(seconds_since(*first_begun_));
      first_begun_.reset();
      wait();
      seconds_ += seconds_since(start);
    };
  }
  void broadcast(at::Tensor& tensor) override { world_.broadcast(tensor); }
  std::function<void()> exchange(const at::Tensor& outgoing, at::Tensor& incoming) override {
    return world_.exchange(outgoing, incoming);
  }
  void barrier() override { world_.barrier(); }

  double seconds() const { return seconds_; }
  // Mean time from the first sum of a step to the end of its backward.
  double ahead() const {
    return std::reduce(ahead_.begin(), ahead_.end()) / static_cast<double>(ahead_.size());
  }
  const std::vector<double>& bytes() const { return bytes_; }  // per sum of a step

 private:
  Communicator& world_;
  double seconds_ = 0;
  std::optional<Clock::time_point> first_begun_;
  std::vector<double> ahead_, bytes_;
};

// Processor time of all threads of this process.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Run {
  double steps_per_second = 0;
  double pairs_per_second = 0;
  double processor_seconds = 0;  // per step, in this process
};

// Trains the network of `attend train` in batches of 4,096 tokens for about `seconds`.
Run train(const std::vector<EncodedPair>& pairs, int64_t replicas, Communicator* world,
          double seconds) {
  ModelConfig model;
  model.type = "transformer";
  model.of<TransformerConfig>().tied = Tied::none;
  TrainConfig config;
  config.precision = Precision::float32;
  config.replicas = replicas;
  config.batch_tokens = batch_tokens;
  config.epochs = 1000;
  config.checkpoint_seconds = 1e6;
  std::vector<std::shared_ptr<PairNetwork>> networks;
  for (int64_t r = 0; r <= replicas; ++r)
    networks.push_back(model.chosen().make_network(codes, codes));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("attend-scale-bench-{}", getpid());
  std::filesystem::create_directories(folder);
  PairBatches source(pairs, config);
  std::atomic<bool> stop = false;
  Run run;
  const double used = processor_seconds();
  TrainTask task;
  task.replicas.assign(networks.begin(), networks.end() - 1);
  task.averaged = networks.back();
  task.source = &source;
  task.world = world;
  task.objective = [&](int64_t replica, const Batch& batch, const Pass& pass) {
    return networks[static_cast<size_t>(replica)]->objective(batch, pass, 0.1);
  };
  task.validate = [] { return Validation{}; };
  task.report = [&](const TrainProgress& progress) {
    run.pairs_per_second = progress.pairs_per_second;
    run.steps_per_second = static_cast<double>(progress.step) / progress.seconds;
    run.processor_seconds = (processor_seconds() - used) / static_cast<double>(progress.step);
    stop = progress.seconds > seconds;
  };
  task.stop = &stop;
  task.folder = folder;
  train_network(config, task, false);
  std::filesystem::remove_all(folder);
  return run;
}

// Seconds of one all-reduce, the minimum of several.
double all_reduce(Communicator& world, int64_t floats) {
  at::Tensor tensor = at::ones({floats});
  double least = 1e9;
  for (int i = 0; i < 12; ++i) {
    world.barrier();
    const auto start = Clock::now();
    world.sum(tensor);
    least = std::min(least, seconds_since(start));
  }
  return least;
}

// Prints the predicted efficiency of many machines for two kinds of all-reduce: all gradients after
// backward, or buckets. Buckets before the last are sent in the last `ahead` seconds of backward.
void predict(double step, double ahead, const std::vector<double>& buckets) {
  constexpr double latency = 50e-6;
  const double bytes = std::reduce(buckets.begin(), buckets.end()), last = buckets.back();
  const auto before = static_cast<double>(buckets.size() - 1);
  fmt::print(
      "\npredicted efficiency t / (t + c) of t = {:.0f} ms, {:.1f} MB and {:.0f} us, by a ring:\n"
      "one sum after backward / {} buckets, {:.1f} MB of them within {:.0f} ms of backward\n"
      "| machines | 10 Gb/s | 100 Gb/s |\n|---|---|---|\n",
      1e3 * step, bytes / 1e6, 1e6 * latency, buckets.size(), (bytes - last) / 1e6, 1e3 * ahead);
  for (const double machines : {8.0, 64.0, 512.0}) {
    fmt::print("| {:.0f} |", machines);
    for (const double bandwidth : {1.25e9, 12.5e9}) {
      // A ring of n machines sends 2 (n - 1) messages of 1/n of the bytes each.
      const auto ring = [&](double sums, double sent_bytes) {
        return 2 * (machines - 1) * (sent_bytes / machines / bandwidth + sums * latency);
      };
      const double shown = std::max(0.0, ring(before, bytes - last) - ahead) + ring(1, last);
      fmt::print(" {:.0f} % / {:.0f} % |", 100 * step / (step + ring(1, bytes)),
                 100 * step / (step + shown));
    }
    fmt::print("\n");
  }
}

void measure(const Options& options, Communicator& world) {
  at::set_num_threads(1);
  const bool tells = world.leads();
  const std::vector<EncodedPair> pairs = bench::sentences(codes);
  for (const int64_t floats :
       {int64_t{1} << 10, int64_t{1} << 14, int64_t{1} << 20, int64_t{1} << 24}) {
    const double seconds = all_reduce(world, floats);
    if (tells)
      fmt::print("all-reduce of {:8.3f} MB: {:8.3f} ms\n", 4e-6 * static_cast<double>(floats),
                 1e3 * seconds);
  }
  std::vector<bench::Round> rounds;
  std::vector<double> buckets;
  for (int turn = 0; turn < options.turns; ++turn) {
    Run one;
    if (tells) one = train(pairs, 2, nullptr, options.seconds);
    world.barrier();
    TimedWorld timed(world);
    const auto start = Clock::now();
    const Run two = train(pairs, 1, &timed, options.seconds);
    const double share = timed.seconds() / seconds_since(start);
    world.barrier();
    buckets = timed.bytes();
    rounds.push_back({one.pairs_per_second, two.pairs_per_second, share, 1 / one.steps_per_second,
                      timed.ahead(), one.processor_seconds, sum(world, two.processor_seconds)});
  }
  const double parameters = std::reduce(buckets.begin(), buckets.end()) / 4;
  const double alone = all_reduce(world, static_cast<int64_t>(parameters));
  if (!tells) return;
  const bench::Rounds all(rounds);
  const double step = all.median(3), ratio = all.ratio(1, 0);
  fmt::print("step of 4,096 tokens, one process of two replicas: {:.0f} ms\n", 1e3 * step);
  fmt::print(
      "all-reduce of its {:.2f} million gradients: {:.1f} ms, {:.1f} % of the step (bar {:.0f} "
      "%)\n",
      parameters / 1e6, 1e3 * alone, 100 * alone / step, 100 * share_bar);
  fmt::print("{} buckets, the first begun {:.0f} ms before the end of backward\n", buckets.size(),
             1e3 * all.median(4));
  fmt::print("waiting for sums, for the other process included: {:.1f} %\n", 100 * all.median(2));
  fmt::print("processor time of a step, one process and two: {:.0f} ms, {:.0f} ms\n",
             1e3 * all.median(5), 1e3 * all.median(6));
  fmt::print("two processes of one replica: {:.3f}x the pairs per second (bar {:.2f})\n", ratio,
             rate_bar);
  predict(step, all.median(4), buckets);
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  using namespace attend;
  Options options;
  CLI::App app("Training in two processes on this machine");
  app.add_option("--seconds", options.seconds, "seconds per turn");
  app.add_option("--turns", options.turns, "turns per row");
  CLI11_PARSE(app, argc, argv);
  std::unique_ptr<Communicator> world;
  std::optional<ChildProcesses> other;
  if (rank_of_environment().size == 1) other.emplace(2);
  world = connect(rank_of_environment());
  measure(options, *world);
}
