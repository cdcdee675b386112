// Decoding speed of untrained networks: training would not change it, since the lengths of answers
// are fixed. A recurrent network decodes greedily, in batches and one by one; a Transformer uses
// beam search. Packed networks are compared with steps of LibTorch. The Transformer is also
// compared with torch::nn::Transformer, which computes all previous positions again in each step.

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>

#include "attend/base/files.h"
#include "attend/data/split.h"
#include "attend/datasets/cmudict.h"
#include "attend/decode/search.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/pair_model.h"
#include "attend/models/transformer_config.h"
#include "attend/nn/worker_threads.h"
#include "bench/measure.h"
#include "bench/peak.h"
#include "bench/plain_models.h"

namespace attend {
namespace {

constexpr int64_t batch_size = 64;
constexpr int64_t beam = 5;
constexpr int64_t codes = 10000;

struct Task {
  PairNetwork* network;
  std::vector<EncodedPair> pairs;
  SearchOptions search = {};

  // Number of steps of the true target.
  int64_t steps(int64_t pair) const {
    return static_cast<int64_t>(pairs[static_cast<size_t>(pair)].target.size()) + 1;
  }
};

void decode(const Task& task, const std::vector<int64_t>& indices) {
  at::NoGradGuard no_gradient;
  const Batch batch = make_batch(task.pairs, indices);
  std::vector<SearchTask> tasks;
  for (const int64_t i : indices) tasks.push_back({.longest = task.steps(i)});
  search(task.network->start(batch.source, batch.source_lengths, {}), tasks,
         {Vocabulary::bos, Vocabulary::eos}, task.search);
}

// Decodes in batches of `size`. A single worker is timed by its own processor time, since the
// waiting thread uses none.
bench::Probe seconds_to_decode(const Task& task, int64_t size, WorkerThreads& workers) {
  const auto batches = batches_by_length(task.pairs, size, 0, 0);
  if (workers.count() > 1)
    return bench::seconds_of(static_cast<int>(workers.count()), [&task, &workers, batches] {
      workers.run(std::ssize(batches),
                  [&](int64_t b) { decode(task, batches[static_cast<size_t>(b)]); });
    });
  const auto all = bench::seconds_of(1, [&task, batches] {
    for (const auto& indices : batches) decode(task, indices);
  });
  return [&workers, all] {
    double seconds = 0;
    workers.run(1, [&](int64_t) { seconds = all(); });
    return seconds;
  };
}

// The simplest beam search: every step runs the decoder again over all targets so far.
void plain_beam(PlainTransformer& model, const Task& task) {
  at::NoGradGuard no_gradient;
  for (const auto& indices : batches_by_length(task.pairs, batch_size, 0, 0)) {
    const Batch batch = make_batch(task.pairs, indices);
    const auto sentences = static_cast<int64_t>(indices.size());
    int64_t longest = 0;
    for (const int64_t i : indices) longest = std::max(longest, task.steps(i));
    const at::Tensor source_padding = padding_of(batch.source, batch.source_lengths);
    const at::Tensor memory = model.encode(batch.source, source_padding).repeat_interleave(beam, 1);
    const at::Tensor padding = source_padding.repeat_interleave(beam, 0);
    at::Tensor targets = at::full({1, sentences * beam}, Vocabulary::bos, at::kLong);
    at::Tensor scores = at::full({sentences, beam}, -1e9);
    scores.select(1, 0).zero_();  // each sentence begins with one hypothesis
    const at::Tensor first = at::arange(sentences).unsqueeze(1) * beam;
    for (int64_t step = 0; step < longest; ++step) {
      const at::Tensor log_p = model.decode(targets, memory, padding).log_softmax(1);
      const auto [best, places] =
          (scores.view({-1, 1}) + log_p).view({sentences, -1}).topk(beam, 1);
      const at::Tensor rows = at::floor_divide(places, log_p.size(1)) + first;
      targets = at::cat({targets.index_select(1, rows.flatten()),
                         at::remainder(places, log_p.size(1)).view({1, -1})});
      scores = best;
    }
  }
}

// Milliseconds of a greedy step after `first` tokens, for the first `sentences` pairs at once.
double step_milliseconds(PairNetwork& network, const Task& task, int64_t sentences, int64_t first) {
  constexpr int64_t count = 32;
  std::vector<int64_t> indices(static_cast<size_t>(sentences));
  std::iota(indices.begin(), indices.end(), 0);
  const Batch batch = make_batch(task.pairs, indices);
  at::NoGradGuard no_gradient;
  const auto state = network.start(batch.source, batch.source_lengths, {});
  const at::Tensor tokens = at::full({sentences}, Vocabulary::unknown + 1, at::kLong);
  for (int64_t step = 0; step < first; ++step) state->step(tokens, false, {});
  const auto run = [&] {
    for (int64_t step = 0; step < count; ++step) state->step(tokens, false, {});
  };
  return bench::seconds_of(1, run)() / count * 1e3;
}

struct Figures {
  nlohmann::json all = nlohmann::json::array();

  void add(const std::string& name, const std::string& metric, double value, double bar, bool met) {
    all.push_back(
        {{"case", name}, {"metric", metric}, {"value", value}, {"bar", bar}, {"met", met}});
  }
};

struct Threads {
  int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  WorkerThreads one{1}, all{cores};
};

void words(Threads& threads, double seconds, Figures& figures) {
  constexpr size_t count = 1000;
  std::vector<Example> examples;
  for (const Pronounced& entry : parse_cmudict(read_file(debian_cmudict), debian_cmudict))
    if (part_of(entry.word) == Part::test && examples.size() < count)
      examples.push_back({entry.word, {entry.pronunciations[0]}});
  const PairModel model = make_pair_model({}, {}, examples),
                  unpacked = make_pair_model({}, {}, examples);
  model.network->pack(WeightType::float32);
  const Task task{model.network.get(), model.encode(examples)},
      plain{unpacked.network.get(), task.pairs};
  const auto rounds = bench::take_turns(
      {seconds_to_decode(task, 1, threads.one), seconds_to_decode(task, batch_size, threads.one),
       seconds_to_decode(task, batch_size, threads.all), seconds_to_decode(plain, 1, threads.one),
       seconds_to_decode(plain, batch_size, threads.one)},
      seconds);
  fmt::print(
      "{} words greedily: one by one {:.2f} s; batches of {} on one thread {:.3f} s, {:.1f}x; on "
      "{} "
      "threads, as the program does, {:.3f} s, {:.1f}x (bar: 10x)\n",
      count, rounds.median(0), batch_size, rounds.median(1), rounds.ratio(0, 1), threads.cores,
      rounds.median(2), rounds.ratio(0, 2));
  fmt::print("steps of LibTorch: one by one {:.2f} s, {:.2f}x; batches of {} {:.3f} s, {:.2f}x\n",
             rounds.median(3), rounds.ratio(3, 0), batch_size, rounds.median(4),
             rounds.ratio(4, 1));
  figures.add("recurrent, greedily, one by one", "packed over steps of LibTorch",
              rounds.ratio(3, 0), 1, rounds.ratio(3, 0) >= 1);
  figures.add("recurrent, greedily, in batches", "packed over steps of LibTorch",
              rounds.ratio(4, 1), 1, rounds.ratio(4, 1) >= 1);
  figures.add("greedy decoding, 1,000 words", "batched over one by one", rounds.ratio(0, 2), 10,
              rounds.ratio(0, 2) >= 10);
}

// Sentences with the lengths of Multi30k's test part, in 10,000 byte-pair codes.
std::vector<EncodedPair> sentences(int64_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> length(13.5, 4.5);
  std::uniform_int_distribution<int64_t> token(Vocabulary::unknown + 1, codes - 1);
  std::vector<EncodedPair> pairs(static_cast<size_t>(count));
  for (EncodedPair& pair : pairs)
    for (auto* side : {&pair.source, &pair.target}) {
      side->resize(static_cast<size_t>(std::clamp(length(random), 4.0, 45.0)));
      for (int64_t& id : *side) id = token(random);
    }
  return pairs;
}

std::shared_ptr<PairNetwork> make_transformer() {
  ModelConfig config;
  config.type = "transformer";
  config.of<TransformerConfig>().tied = Tied::none;
  torch::manual_seed(1);
  auto network = config.chosen().make_network(codes, codes);
  network->eval();
  return network;
}

// In batches on one thread and on all threads, and one sentence at a time.
void packed_steps(const Task& packed, const Task& unpacked, Threads& threads, double seconds,
                  Figures& figures) {
  for (const auto& [size, workers] : {std::pair{batch_size, &threads.one},
                                      {batch_size, &threads.all},
                                      {int64_t{1}, &threads.one}}) {
    const auto count = static_cast<int>(workers->count());
    const auto rounds = bench::take_turns(
        {seconds_to_decode(packed, size, *workers), seconds_to_decode(unpacked, size, *workers)},
        seconds);
    fmt::print(
        "{} sentences, beam {}, batches of {}, {} threads: packed {:.2f} s, steps of LibTorch "
        "{:.2f} "
        "s, {:.2f}x\n",
        packed.pairs.size(), beam, size, count, rounds.median(0), rounds.median(1),
        rounds.ratio(1, 0));
    figures.add(fmt::format("Transformer, beam 5, batches of {}, {} threads", size, count),
                "packed over steps of LibTorch", rounds.ratio(1, 0), 2, rounds.ratio(1, 0) >= 2);
  }
}

void transformer(Threads& threads, double seconds, Figures& figures) {
  const auto network = make_transformer(), unpacked = make_transformer();
  network->pack(WeightType::float32);
  PlainTransformer plain({codes, codes});
  plain.eval();
  Task task{network.get(), sentences(500)};
  task.search.beam = beam;
  packed_steps(task, {unpacked.get(), task.pairs, task.search}, threads, seconds, figures);
  const auto rounds = bench::take_turns({seconds_to_decode(task, batch_size, threads.all),
                                         bench::seconds_of(2,
                                                           [&] {
                                                             at::set_num_threads(2);
                                                             plain_beam(plain, task);
                                                             at::set_num_threads(1);
                                                           })},
                                        seconds);
  fmt::print(
      "{} sentences, beam {}, batches of {}: attend {:.2f} s; "
      "torch::nn::Transformer run again each step {:.2f} s, {:.1f}x (bar: 2x)\n",
      task.pairs.size(), beam, batch_size, rounds.median(0), rounds.median(1), rounds.ratio(1, 0));
  figures.add("Transformer, beam 5", "over running all again each step", rounds.ratio(1, 0), 2,
              rounds.ratio(1, 0) >= 2);
}

// Bytes by which the caches of keys and values grow over `steps` steps.
int64_t cache_growth(WeightType weights, int64_t sentences, int64_t steps) {
  const TransformerConfig config;
  const int64_t number = cache_type(weights) == kernels::CacheType::float32 ? 4 : 2;
  return sentences * steps * config.decoder_layers * 2 * config.depth * number;
}

// Milliseconds that one thread takes to read `bytes` from memory. Reads from an area that is larger
// than any processor cache.
bench::Probe reading(int64_t bytes) {
  constexpr int64_t kTogether = 512 << 20;
  const auto memory = std::make_shared<std::vector<char>>(static_cast<size_t>(kTogether), 'a');
  const bench::Probe read = bench::seconds_of(1, [=, offset = int64_t{0}]() mutable {
    if (offset + bytes > kTogether) offset = 0;
    volatile uint64_t keep = bench::read_all(memory->data() + offset, bytes);
    (void)keep;
    offset += bytes;
  });
  return [read] { return read() * 1e3; };
}

// The caches of many sentences, read again in each step, outgrow the processor's caches. A step
// then slows down by at least the time to read the growth.
void steps(double seconds, Figures& figures) {
  const std::vector<EncodedPair> pairs = sentences(batch_size);
  for (const auto& [name, weights] : {std::pair{"float32", WeightType::float32},
                                      {"bfloat16", WeightType::bfloat16},
                                      {"int8", WeightType::int8}}) {
    const auto network = make_transformer();
    network->pack(weights);
    const Task task{network.get(), pairs};
    for (const int64_t count : {int64_t{1}, batch_size}) {
      const int64_t bytes = cache_growth(weights, count, 200 - 8);
      const auto turns = bench::take_turns(
          {[&] { return step_milliseconds(*network, task, count, 8); },
           [&] { return step_milliseconds(*network, task, count, 200); }, reading(bytes)},
          seconds / 2);
      fmt::print(
          "a greedy step of {} sentences, {}: {:.2f} ms after 8 tokens, {:.2f} ms after 200, "
          "{:.2f}x (bar: 1.25x)\n",
          count, name, turns.median(0), turns.median(1), turns.ratio(1, 0));
      if (count > 1)
        fmt::print("  caches grow by {:.1f} MB, read from memory in {:.2f} ms: at least {:.2f}x\n",
                   1e-6 * static_cast<double>(bytes), turns.median(2),
                   turns.median([](const bench::Round& turn) { return 1 + turn[2] / turn[0]; }));
      figures.add(fmt::format("Transformer, greedy step of {}, {}", count, name),
                  "after 200 tokens over after 8", turns.ratio(1, 0), 1.25,
                  turns.ratio(1, 0) <= 1.25);
    }
  }
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  using namespace attend;
  double seconds = 10;
  bool json = false;
  std::string only;
  CLI::App app("Decoding, batched and with caches");
  app.add_option("--seconds", seconds, "seconds per measurement");
  app.add_flag("--json", json, "print the figures as JSON, too");
  app.add_option("--only", only, "one part")
      ->check(CLI::IsMember({"words", "transformer", "steps"}));
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  torch::manual_seed(1);
  Threads threads;
  Figures figures;
  if (only.empty() || only == "words") words(threads, seconds, figures);
  if (only.empty() || only == "transformer") transformer(threads, seconds, figures);
  if (only.empty() || only == "steps") steps(seconds, figures);
  if (json) fmt::print("{}\n", figures.all.dump());
}
