// Training throughput: Attend's replicas against a plain loop over LibTorch's own layers, on the
// same batches. Both take turns in one run, and the medians are compared. Attend runs first, so
// that the reported peak of memory is its own.

#include <fmt/format.h>
#include <sys/resource.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "attend/base/files.h"
#include "attend/base/memory.h"
#include "attend/datasets/cmudict.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/pair_model.h"
#include "attend/models/transformer_config.h"
#include "attend/nn/linear.h"
#include "attend/train/trainer.h"
#include "bench/measure.h"
#include "bench/plain_models.h"
#include "bench/training_data.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t batch_tokens = 4096;
constexpr double smoothing = 0.1;
constexpr double bar = 1.5;
constexpr int64_t codes = 10000;  // tokens of sentences

struct Options {
  double seconds = 8;  // per turn
  int turns = 3;
  bool json = false;
  std::string only = {};               // name of a task
  std::filesystem::path batches = {};  // folder for NAME.json
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Task {
  std::string name;
  ModelConfig model;
  int64_t source_tokens, target_tokens;
  std::vector<EncodedPair> pairs;
  std::function<at::Tensor(const Batch&)> logits = {};  // [T, B, V] of the plain model
  std::vector<at::Tensor> parameters = {};              // parameters of the plain model

  double tokens_per_pair() const {
    double tokens = 0;
    for (const EncodedPair& pair : pairs)
      tokens += static_cast<double>(pair.source.size() + pair.target.size());
    return tokens / static_cast<double>(pairs.size());
  }
};

// Tokens per second of the loop that a careful newcomer writes: padded batches of similar length,
// Adam, gradient clipping.
double plain(const Task& task, const Options& options) {
  at::set_num_threads(2);
  torch::optim::Adam adam(task.parameters, torch::optim::AdamOptions(1e-3));
  int64_t done = 0;
  const auto start = Clock::now();
  for (const auto& indices : batches_by_tokens(task.pairs, batch_tokens, 1, 0)) {
    const Batch batch = make_batch(task.pairs, indices);
    adam.zero_grad();
    const at::Tensor logits = task.logits(batch);
    at::cross_entropy_loss(logits.flatten(0, 1), batch.target.t().flatten(), {},
                           at::Reduction::Mean, Vocabulary::padding, smoothing)
        .backward();
    torch::nn::utils::clip_grad_norm_(task.parameters, 1.0);
    adam.step();
    done += static_cast<int64_t>(indices.size());
    if (seconds_since(start) > options.seconds) break;
  }
  return static_cast<double>(done) * task.tokens_per_pair() / seconds_since(start);
}

double with_replicas(const Task& task, const Options& options, Precision precision) {
  at::set_num_threads(1);
  TrainConfig config;
  config.precision = precision;
  config.batch_tokens = batch_tokens;
  config.epochs = 1000;
  config.checkpoint_seconds = 1e6;
  std::vector<std::shared_ptr<PairNetwork>> networks;
  for (int64_t r = 0; r <= config.replicas; ++r)
    networks.push_back(task.model.chosen().make_network(task.source_tokens, task.target_tokens));
  const auto folder = std::filesystem::temp_directory_path() / "attend-train-bench";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::atomic<bool> stop = false;
  double rate = 0;
  TrainTask training;
  training.replicas.assign(networks.begin(), networks.end() - 1);
  training.averaged = networks.back();
  PairBatches source(task.pairs, config);
  training.source = &source;
  training.objective = [&](int64_t replica, const Batch& batch, const Pass& pass) {
    return networks[static_cast<size_t>(replica)]->objective(batch, pass, smoothing);
  };
  training.validate = [] { return Validation{}; };
  training.report = [&](const TrainProgress& progress) {
    rate = progress.pairs_per_second;
    stop = progress.seconds > options.seconds;
  };
  training.stop = &stop;
  training.folder = folder;
  train_network(config, training, false);
  std::filesystem::remove_all(folder);
  return rate * task.tokens_per_pair();
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Row {
  std::string name;
  bench::Probe rate;  // tokens per second
};

// Writes padded tokens, [B, S] and [B, T], for training another library on the same batches.
void write_batches(const Task& task, const std::filesystem::path& folder) {
  constexpr size_t maximum = 200;
  const auto rows = [](const at::Tensor& tokens) {
    auto lists = nlohmann::json::array();
    for (int64_t b = 0; b < tokens.size(0); ++b) {
      const at::Tensor row = tokens[b].contiguous();
      lists.push_back(
          std::vector<int64_t>(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + row.numel()));
    }
    return lists;
  };
  auto batches = nlohmann::json::array();
  for (const auto& indices : batches_by_tokens(task.pairs, batch_tokens, 1, 0)) {
    const Batch batch = make_batch(task.pairs, indices);
    batches.push_back({{"source", rows(batch.source)}, {"target", rows(batch.target)}});
    if (batches.size() == maximum) break;
  }
  write_file(folder / (task.name + ".json"),
             nlohmann::json{{"source_tokens", task.source_tokens},
                            {"target_tokens", task.target_tokens},
                            {"padding", int64_t{Vocabulary::padding}},
                            {"bos", int64_t{Vocabulary::bos}},
                            {"batches", batches}}
                 .dump());
}

void compare(const Task& task, const Options& options, nlohmann::json& figures) {
  if (!options.only.empty() && options.only != task.name) return;
  if (!options.batches.empty()) return write_batches(task, options.batches);
  std::vector<Row> rows = {{"attend, 2 replicas, float32",
                            [&] { return with_replicas(task, options, Precision::float32); }}};
  if (multiplies_bfloat16())
    rows.push_back({"attend, 2 replicas, bfloat16",
                    [&] { return with_replicas(task, options, Precision::bfloat16); }});
  rows.push_back({"plain LibTorch, 2 threads", [&] { return plain(task, options); }});
  const size_t last = rows.size() - 1;
  double peak = 0;
  std::vector<bench::Round> measured(static_cast<size_t>(options.turns));
  for (bench::Round& round : measured)
    for (const Row& row : rows) {
      if (peak == 0 && &row == &rows.back()) peak = peak_megabytes();
      round.push_back(row.rate());
    }
  const bench::Rounds rounds(measured);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double ratio = rounds.ratio(i, last);
    fmt::print("{:12}  {:30} {:8.0f} tokens/s  {:5.2f}x\n", task.name, rows[i].name,
               rounds.median(i), ratio);
    const std::string name = fmt::format("{}, {}", task.name, rows[i].name);
    figures.push_back({{"case", name}, {"metric", "tokens/s"}, {"value", rounds.median(i)}});
    figures.push_back({{"case", name},
                       {"metric", "tokens/s over plain LibTorch"},
                       {"value", ratio},
                       {"bar", i < last ? nlohmann::json(bar) : nullptr},
                       {"met", i == last || ratio >= bar}});
  }
  fmt::print("{:12}  peak memory before the plain loop began: {:.0f} MB\n", task.name, peak);
}

void transformer(const Options& options, nlohmann::json& figures) {
  Task task{"Transformer", {}, codes, codes, bench::sentences(codes)};
  task.model.type = "transformer";
  task.model.of<TransformerConfig>().tied = Tied::none;
  const auto network = std::make_shared<PlainTransformer>(PlainSizes{codes, codes});
  task.logits = [network](const Batch& batch) { return network->logits(batch); };
  task.parameters = network->parameters();
  compare(task, options, figures);
}

void recurrent(Task task, const Options& options, nlohmann::json& figures) {
  const auto network =
      std::make_shared<PlainRecurrent>(PlainSizes{task.source_tokens, task.target_tokens});
  task.logits = [network](const Batch& batch) { return network->logits(batch); };
  task.parameters = network->parameters();
  compare(task, options, figures);
}

Task words() {
  std::vector<Example> examples;
  for (const Pronounced& entry : parse_cmudict(read_file(debian_cmudict), debian_cmudict))
    examples.push_back({entry.word, entry.pronunciations});
  const PairModel model = make_pair_model({}, {}, examples);
  return {"words",
          {},
          model.source_vocabulary.size(),
          model.target_vocabulary.size(),
          model.encode(examples)};
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  attend::keep_memory();  // as `attend train` does
  attend::keep_large_memory();
  using namespace attend;
  Options options;
  CLI::App app("Training throughput against a plain LibTorch loop");
  app.add_option("--seconds", options.seconds, "seconds per turn");
  app.add_option("--turns", options.turns, "turns per row");
  app.add_option("--only", options.only, "Transformer, recurrent or words");
  app.add_option("--batches", options.batches,
                 "write the batches there, as JSON, and time nothing");
  app.add_flag("--json", options.json, "print the figures as JSON, too");
  CLI11_PARSE(app, argc, argv);
  nlohmann::json figures = nlohmann::json::array();
  transformer(options, figures);
  recurrent({"recurrent", {}, codes, codes, bench::sentences(codes)}, options, figures);
  recurrent(words(), options, figures);
  if (options.json) fmt::print("{}\n", figures.dump());
}
