#include "attend/runs/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/hash.h"
#include "attend/decode/not_a_number.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/predictor.h"
#include "attend/train/window_batches.h"

namespace attend {
namespace {

// The share of one process: every n-th element, so that all have the same mix.
template <class T>
void keep_share(std::vector<T>& all, const Communicator& world) {
  std::vector<T> own;
  for (auto i = world.rank(); i < std::ssize(all); i += world.size())
    own.push_back(std::move(all[static_cast<size_t>(i)]));
  all = std::move(own);
}

// Keeps one element of each of `most` equal parts, so that the result does not depend on the order
// of the data. Its index in the part is random with a fixed seed, because every n-th example could
// have the same label.
template <class T>
void keep_spread(std::vector<T>& all, size_t maximum) {
  if (all.size() <= maximum) return;
  std::mt19937_64 random(1);
  std::vector<T> kept;
  kept.reserve(maximum);
  for (size_t part = 0; part < maximum; ++part) {
    const size_t first = part * all.size() / maximum, end = (part + 1) * all.size() / maximum;
    kept.push_back(std::move(all[first + random() % (end - first)]));
  }
  all = std::move(kept);
}

// Separates texts by a value that is not a byte.
void add_text(Fnv1a& hash, std::string_view text) {
  hash.add_bytes(text);
  hash.add(256);
}

// For an image or a sound, hashes only the file name, because the folder may move.
uint64_t hash_of(const std::vector<Example>& examples, bool are_files) {
  Fnv1a hash;
  for (const Example& example : examples) {
    add_text(hash, are_files ? std::filesystem::path(example.source).filename().string()
                             : example.source);
    for (const std::string& target : example.targets) add_text(hash, target);
    add_text(hash, "");
  }
  return hash.value();
}

uint64_t hash_of(const std::string& text, size_t windows) {
  Fnv1a hash;
  add_text(hash, text);
  add_text(hash, fmt::format("{}", windows));
  return hash.value();
}

Model model_with(PairModel model, std::shared_ptr<PairNetwork> network, int64_t threads) {
  model.network = std::move(network);
  return Predictor::as_model(
      std::make_unique<Predictor>(std::move(model), ModelOptions{.threads = threads}));
}

// Processes may have counted different keys, such as labels.
MetricCounts counts_of_all(Communicator& world, const MetricCounts& counts) {
  MetricCounts all;
  for (const std::string& part : of_all(world, nlohmann::json(counts).dump()))
    add_counts(all, nlohmann::json::parse(part).get<MetricCounts>());
  return all;
}

}  // namespace

Validator::Validator(const RunConfig& config, const PairModel& model, const PairData& data,
                     std::shared_ptr<PairNetwork> averaged, Communicator& world)
    : metric_(metric_named(config.train.metric)),
      world_(world),
      examples_(data.valid.examples),
      averaged_(model_with(model, std::move(averaged), config.train.replicas)) {
  const auto maximum = static_cast<size_t>(config.train.validation_examples);
  const AnswerKind& kind = model.answer_kind();
  if (data.valid_text.empty()) {
    available_ = std::ssize(examples_);
    keep_spread(examples_, maximum);
    measured_ = std::ssize(examples_);
    fingerprint_ = hash_of(examples_, model.codecs.source.names_file);
    keep_share(examples_, world);
    pairs_ = model.encode(examples_);
    kind.hide_unknown(pairs_);
  } else {
    pairs_ = windows_in_order(model.encode_text(data.valid_text),
                              model.config.chosen().context() - 1, 1);
    available_ = std::ssize(pairs_);
    keep_spread(pairs_, maximum);
    measured_ = std::ssize(pairs_);
    fingerprint_ = hash_of(data.valid_text, pairs_.size());
    keep_share(pairs_, world);
  }
  tokens_ = static_cast<double>(kind.loss_terms(pairs_));
  all_tokens_ = sum(world, tokens_);
  if (all_tokens_ == 0)
    fail("no target of the validation data is one of training; give other validation data");
}

Validation Validator::operator()() {
  Predictor& predictor = Predictor::of(averaged_);
  if (metric_.of_answers() || predictor.model().network->packs_objective()) predictor.pack();
  const double loss = sum(world_, predictor.loss(pairs_) * (tokens_ / all_tokens_));
  // Counted as one token, so the loss keeps all its digits.
  if (!metric_.of_answers()) return {loss, metric_.of_likelihood({.nats = loss, .tokens = 1})};
  const MetricOptions options = metric_options(averaged_);
  MetricCounts counts;
  bool failed = std::isnan(loss);  // equal in all processes
  if (!failed) {
    try {
      counts = count_answers(metric_, measured_answers(metric_, averaged_, examples_), options);
    } catch (const NotANumber&) {
      failed = true;
    }
  }
  if (sum(world_, failed ? 1 : 0) > 0) return {loss, std::numeric_limits<double>::quiet_NaN()};
  return {loss, metric_.figure(counts_of_all(world_, counts), options)};
}

}  // namespace attend
