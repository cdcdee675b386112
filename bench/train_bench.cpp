// Training throughput: Attend's replicas against the same model in one straightforward LibTorch
// process. Both take turns in one run; the medians are compared.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/base/files.h"
#include "attend/data/cmudict.h"
#include "attend/models/pair_model.h"
#include "attend/train/trainer.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t batch_size = 128;
constexpr double turn_seconds = 8;
constexpr int turns = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<Example> dictionary() {
  std::vector<Example> examples;
  const std::string bytes = read_file(debian_cmudict);
  for (const Pronounced& entry : parse_cmudict(bytes, debian_cmudict))
    examples.push_back({entry.word, entry.pronunciations});
  return examples;
}

// What a careful newcomer writes: padded batches of similar length, Adam, clipping.
double straightforward(const PairModel& model, const std::vector<EncodedPair>& pairs, int threads) {
  at::set_num_threads(threads);
  const auto network = model.make_network();
  torch::optim::Adam adam(network->parameters(), torch::optim::AdamOptions(2e-3));
  const Noise noise = at::detail::getDefaultCPUGenerator();
  int64_t done = 0;
  const auto start = Clock::now();
  for (const auto& indices : batches_by_length(pairs, batch_size, 1, 0)) {
    const Batch batch = make_batch(pairs, indices);
    adam.zero_grad();
    const at::Tensor loss = sequence_loss(network->logits(batch, noise), batch.target, 0.1) /
                            batch.target_lengths.sum();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(network->parameters(), 1.0);
    adam.step();
    done += static_cast<int64_t>(indices.size());
    if (seconds_since(start) > turn_seconds) break;
  }
  return static_cast<double>(done) / seconds_since(start);
}

double with_replicas(const PairModel& model, const std::vector<EncodedPair>& pairs,
                     int64_t replicas) {
  std::vector<std::shared_ptr<Seq2Seq>> networks;
  for (int64_t r = 0; r < replicas; ++r) networks.push_back(model.make_network());
  TrainConfig config;
  config.replicas = replicas;
  config.batch = batch_size;
  config.checkpoint_seconds = 1e6;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "attend-train-bench";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::atomic<bool> stop = false;
  double rate = 0;
  TrainTask task;
  task.replicas.assign(networks.begin(), networks.end());
  task.averaged = model.make_network();
  PairBatches source(pairs, config);
  task.source = &source;
  task.objective = [&](int64_t replica, const Batch& batch, const Noise& noise) {
    return sequence_loss(networks[static_cast<size_t>(replica)]->logits(batch, noise), batch.target,
                         0.1);
  };
  task.validate = [] { return Validation{}; };
  task.report = [&](const TrainProgress& progress) {
    rate = progress.pairs_per_second;
    stop = progress.seconds > turn_seconds;
  };
  task.stop = &stop;
  task.folder = folder;
  train(config, task, false);
  std::filesystem::remove_all(folder);
  return rate;
}

struct Row {
  std::string name;
  std::vector<double> rates;
};

void compare(int64_t hidden, int default_threads, nlohmann::json& figures) {
  Seq2SeqConfig config;
  config.hidden = config.attention_depth = hidden;
  config.embedding = hidden / 2;
  const std::vector<Example> examples = dictionary();
  const PairModel model = make_pair_model({}, config, examples);
  const std::vector<EncodedPair> pairs = model.encode(examples);
  std::vector<Row> rows = {
      {fmt::format("straightforward, {} (default) threads", default_threads), {}},
      {"straightforward, 2 threads", {}},
      {"attend, 2 replicas", {}}};
  for (int turn = 0; turn < turns; ++turn) {
    rows[0].rates.push_back(straightforward(model, pairs, default_threads));
    rows[1].rates.push_back(straightforward(model, pairs, 2));
    rows[2].rates.push_back(with_replicas(model, pairs, 2));
  }
  const double base = median(rows[0].rates);
  for (const Row& row : rows) {
    const double ratio = median(row.rates) / base;
    fmt::print("hidden {:4}  {:40} {:8.0f} pairs/s  {:5.2f}x\n", hidden, row.name,
               median(row.rates), ratio);
    figures.push_back({{"case", fmt::format("hidden {}, {}", hidden, row.name)},
                       {"metric", "pairs/s over straightforward"},
                       {"value", ratio},
                       {"bar", row.name.starts_with("attend") ? nlohmann::json(1.5) : nullptr},
                       {"met", !row.name.starts_with("attend") || ratio >= 1.5}});
  }
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  const int default_threads = at::get_num_threads();
  nlohmann::json figures = nlohmann::json::array();
  for (const int64_t hidden : {128, 256}) attend::compare(hidden, default_threads, figures);
  if (argc > 1 && std::string(argv[1]) == "--json") fmt::print("{}\n", figures.dump());
}
