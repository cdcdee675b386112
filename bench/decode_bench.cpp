// Greedy decoding of 1,000 words in batches against one by one, with the weights of a new network:
// what is measured does not depend on what it learned, as every answer is cut at the same length.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "attend/base/files.h"
#include "attend/data/cmudict.h"
#include "attend/decode/search.h"
#include "attend/models/pair_model.h"
#include "attend/train/replica_threads.h"

namespace attend {
namespace {

constexpr size_t words = 1000;
constexpr int64_t batch_size = 64;
constexpr int turns = 5;

double decode(const PairModel& model, const std::vector<EncodedPair>& pairs, int64_t batch_size,
              ReplicaThreads& threads, int64_t thread_count) {
  const auto start = std::chrono::steady_clock::now();
  const auto batches = batches_by_length(pairs, batch_size, 0, 0);
  threads.run([&](int64_t thread) {
    at::NoGradGuard no_gradient;
    for (auto b = static_cast<size_t>(thread); b < batches.size();
         b += static_cast<size_t>(thread_count)) {
      const Batch batch = make_batch(pairs, batches[b]);
      // As many steps as the true pronunciation has.
      std::vector<SearchTask> tasks;
      for (const int64_t i : batches[b])
        tasks.push_back(
            {.longest = static_cast<int64_t>(pairs[static_cast<size_t>(i)].target.size()) + 1});
      search(*model.network, model.network->start(batch.source, batch.source_lengths), tasks,
             {Vocabulary::start, Vocabulary::end}, {});
    }
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  using namespace attend;
  at::set_num_threads(1);
  std::vector<Example> examples;
  for (const Pronounced& entry : parse_cmudict(read_file(debian_cmudict), debian_cmudict))
    if (part_of(entry.word) == Part::test && examples.size() < words)
      examples.push_back({entry.word, {entry.pronunciations[0]}});
  torch::manual_seed(1);
  const PairModel model = make_pair_model({}, {}, examples);
  const std::vector<EncodedPair> pairs = model.encode(examples);
  const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  ReplicaThreads one_thread(1), all_threads(cores);
  std::vector<double> single, batched, shared_out;
  for (int turn = 0; turn < turns; ++turn) {
    single.push_back(decode(model, pairs, 1, one_thread, 1));
    batched.push_back(decode(model, pairs, batch_size, one_thread, 1));
    shared_out.push_back(decode(model, pairs, batch_size, all_threads, cores));
  }
  const double ratio = median(single) / median(shared_out);
  fmt::print(
      "{} words greedily: one by one {:.2f} s; batches of {} on one thread {:.3f} s, {:.1f}x; on "
      "{} "
      "threads, as the program does, {:.3f} s, {:.1f}x (bar: 10x)\n",
      pairs.size(), median(single), batch_size, median(batched), median(single) / median(batched),
      cores, median(shared_out), ratio);
  if (argc > 1 && std::string(argv[1]) == "--json")
    fmt::print("{}\n", nlohmann::json::array({{{"case", "greedy decoding, 1,000 words"},
                                               {"metric", "batched over one by one"},
                                               {"value", ratio},
                                               {"bar", 10},
                                               {"met", ratio >= 10}}})
                           .dump());
}
