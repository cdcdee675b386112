// Training in two processes on this machine: what their all-reduce takes, how much of a step it is,
// how fast they are beside one process with two replicas, and what follows for more machines.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
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
  double seconds = 8;  // a turn
  int turns = 3;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Counts the time that sums of gradients take, waiting for the other process included.
class TimedWorld : public Communicator {
 public:
  explicit TimedWorld(Communicator& world) : world_(world) {}

  int64_t rank() const override { return world_.rank(); }
  int64_t size() const override { return world_.size(); }
  std::function<void()> begin_sum(at::Tensor& tensor) override {
    return [this, wait = world_.begin_sum(tensor)] {
      const auto start = Clock::now();
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

 private:
  Communicator& world_;
  double seconds_ = 0;
};

struct Run {
  double steps_a_second = 0;
  double pairs_a_second = 0;
  double parameters = 0;
};

// The network of `attend train` at batches of 4,096 tokens, for some seconds.
Run train(const std::vector<EncodedPair>& pairs, int64_t replicas, Communicator* world,
          double seconds) {
  ModelConfig model;
  model.type = "transformer";
  model.of<TransformerConfig>().tied = "none";
  TrainConfig config;
  config.precision = "float32";
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
  for (const auto& parameter : networks[0]->parameters())
    run.parameters += static_cast<double>(parameter.numel());
  TrainTask task;
  task.replicas.assign(networks.begin(), networks.end() - 1);
  task.averaged = networks.back();
  task.source = &source;
  task.world = world;
  task.objective = [&](int64_t replica, const Batch& batch, const DropoutGenerator& generator) {
    return networks[static_cast<size_t>(replica)]->objective(batch, generator, 0.1);
  };
  task.validate = [] { return Validation{}; };
  task.report = [&](const TrainProgress& progress) {
    run.pairs_a_second = progress.pairs_per_second;
    run.steps_a_second = static_cast<double>(progress.step) / progress.seconds;
    stop = progress.seconds > seconds;
  };
  task.stop = &stop;
  task.folder = folder;
  train_network(config, task, false);
  std::filesystem::remove_all(folder);
  return run;
}

// Seconds of one all-reduce, the least of several.
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

// A ring of n machines sends 2 (n - 1) messages of 1/n of the gradients each.
void predict(double step, double bytes) {
  constexpr double latency = 50e-6;
  fmt::print(
      "\npredicted efficiency t / (t + c), c = 2 (n - 1) / n * bytes / bandwidth + 2 (n - 1) * "
      "latency,\n"
      "of t = {:.0f} ms, {:.1f} MB and {:.0f} us:\n| machines | 10 Gb/s | 100 Gb/s "
      "|\n|---|---|---|\n",
      1e3 * step, bytes / 1e6, 1e6 * latency);
  for (const double machines : {8.0, 64.0, 512.0}) {
    fmt::print("| {:.0f} |", machines);
    for (const double bandwidth : {1.25e9, 12.5e9}) {
      const double sent =
          2 * (machines - 1) / machines * bytes / bandwidth + 2 * (machines - 1) * latency;
      fmt::print(" {:.0f} % |", 100 * step / (step + sent));
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
  double parameters = 0;
  for (int turn = 0; turn < options.turns; ++turn) {
    Run one;
    if (tells) one = train(pairs, 2, nullptr, options.seconds);
    world.barrier();
    TimedWorld timed(world);
    const auto start = Clock::now();
    const Run two = train(pairs, 1, &timed, options.seconds);
    const double share = timed.seconds() / seconds_since(start);
    world.barrier();
    parameters = two.parameters;
    rounds.push_back({one.pairs_a_second, two.pairs_a_second, share, 1 / one.steps_a_second});
  }
  const double alone = all_reduce(world, static_cast<int64_t>(parameters));
  if (!tells) return;
  const bench::Rounds all(rounds);
  const double step = all.median(3), ratio = all.ratio(1, 0);
  fmt::print("step of 4,096 tokens, one process of two replicas: {:.0f} ms\n", 1e3 * step);
  fmt::print(
      "all-reduce of its {:.2f} million gradients: {:.1f} ms, {:.1f} % of the step (bar {:.0f} "
      "%)\n",
      parameters / 1e6, 1e3 * alone, 100 * alone / step, 100 * share_bar);
  fmt::print("in sums, waiting for the other process included: {:.1f} %\n", 100 * all.median(2));
  fmt::print("two processes of one replica: {:.3f}x the pairs a second (bar {:.2f})\n", ratio,
             rate_bar);
  predict(step, 4 * parameters);
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  using namespace attend;
  Options options;
  CLI::App app("Training in two processes on this machine");
  app.add_option("--seconds", options.seconds, "of each turn");
  app.add_option("--turns", options.turns, "of each");
  CLI11_PARSE(app, argc, argv);
  std::unique_ptr<Communicator> world;
  std::optional<ChildProcesses> other;
  if (place_of_environment().size == 1) other.emplace(2);
  world = meet(place_of_environment());
  measure(options, *world);
}
