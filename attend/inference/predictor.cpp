#include "attend/inference/predictor.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "attend/base/error.h"
#include "attend/nn/steady_rows.h"

namespace attend {
namespace {

using at::Tensor;

// Small enough for 1,000 words to be shared out evenly, large enough for full-speed products.
constexpr int64_t sentences_a_batch = 64;

constexpr SpecialTokens ends{Vocabulary::bos, Vocabulary::eos};

bool same_tokens(const Vocabulary& a, const Vocabulary& b) {
  if (a.size() != b.size()) return false;
  for (int64_t id = 0; id < a.size(); ++id)
    if (a.token(id) != b.token(id)) return false;
  return true;
}

std::vector<StepModel*> as_step_models(const std::vector<std::shared_ptr<PairNetwork>>& networks) {
  std::vector<StepModel*> models;
  models.reserve(networks.size());
  for (const auto& network : networks) models.push_back(network.get());
  return models;
}

std::vector<std::shared_ptr<PairNetwork>> joined(
    std::shared_ptr<PairNetwork> first, const std::vector<std::shared_ptr<PairNetwork>>& others) {
  std::vector<std::shared_ptr<PairNetwork>> all = {std::move(first)};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace

std::vector<std::shared_ptr<PairNetwork>> load_members(const PairModel& model,
                                                       const std::vector<std::string>& folders) {
  std::vector<std::shared_ptr<PairNetwork>> networks;
  networks.reserve(folders.size());
  for (const std::string& folder : folders) {
    const PairModel member = load_pair_model(folder);
    if (!same_tokens(member.source_vocabulary, model.source_vocabulary) ||
        !same_tokens(member.target_vocabulary, model.target_vocabulary))
      fail(
          "{}: has other vocabularies than the first model; models that decode as one were trained "
          "on the same data",
          folder);
    networks.push_back(member.network);
  }
  return networks;
}

Predictor::Predictor(const PairModel& model, std::shared_ptr<PairNetwork> network, int64_t threads,
                     const std::vector<std::shared_ptr<PairNetwork>>& others)
    : model_(model),
      networks_(joined(std::move(network), others)),
      ensemble_(as_step_models(networks_)),
      threads_(threads),
      thread_count_(threads) {}

void Predictor::place(const Devices& devices) {
  for (const auto& network : networks_) network->place(devices);
}

StepModel& Predictor::decoder() {
  if (networks_.size() > 1) return ensemble_;
  return *networks_[0];
}

StepState Predictor::start(const Batch& batch) {
  if (networks_.size() == 1) return networks_[0]->start(batch.source, batch.source_lengths);
  StepState state;
  state.members.reserve(networks_.size());
  for (const auto& network : networks_)
    state.members.push_back(network->start(batch.source, batch.source_lengths));
  return state;
}

bool Predictor::wants_equal_lengths() const {
  return std::any_of(networks_.begin(), networks_.end(),
                     [](const auto& network) { return network->wants_equal_lengths(); });
}

std::vector<int64_t> Predictor::read_frames(const std::vector<std::string>& texts,
                                            std::vector<Prediction>& predictions,
                                            std::vector<EncodedPair>& encoded) const {
  std::vector<int64_t> answered;
  answered.reserve(texts.size());
  FrameReader reader = model_.frame_reader();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (split_units(texts[i], Units::line).empty()) continue;
    encoded[i].frames = model_.source_frames(texts[i], reader, &predictions[i].cut);
    predictions[i].source =
        frame_names(model_.text.reads_images(), model_.text.frames, encoded[i].source_length());
    answered.push_back(static_cast<int64_t>(i));
  }
  return answered;
}

std::vector<int64_t> Predictor::read(const std::vector<std::string>& texts,
                                     std::vector<Prediction>& predictions,
                                     std::vector<EncodedPair>& encoded) const {
  if (model_.text.reads_frames()) return read_frames(texts, predictions, encoded);
  std::vector<int64_t> answered;
  answered.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    auto tokens = model_.codecs.source.split(texts[i]);
    predictions[i].cut = model_.cut_source(tokens);
    encoded[i].source = model_.source_ids(tokens);
    predictions[i].source = std::move(tokens);
    // What goes on with its source can begin with none.
    if (encoded[i].source_length() > 0 || wants_equal_lengths())
      answered.push_back(static_cast<int64_t>(i));
  }
  return answered;
}

void Predictor::in_batches(const std::vector<EncodedPair>& pairs, std::vector<int64_t> order,
                           const std::function<void(const std::vector<int64_t>&)>& work) {
  const auto length = [&](int64_t i) { return pairs[static_cast<size_t>(i)].source_length(); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return length(a) < length(b); });
  // Small inputs are shared out too, large ones in batches of a good size.
  const auto count = static_cast<int64_t>(order.size());
  const auto size = static_cast<size_t>(
      std::clamp<int64_t>((count + thread_count_ - 1) / thread_count_, 1, sentences_a_batch));
  std::vector<std::vector<int64_t>> batches;
  for (const int64_t i : order) {
    // A batch has sources of one length, as padding would change the last bits of its answers.
    if (batches.empty() || batches.back().size() == size || length(batches.back()[0]) != length(i))
      batches.emplace_back();
    batches.back().push_back(i);
  }
  threads_.run([&](int64_t thread) {
    at::NoGradGuard no_gradient;
    const SteadyRows steady;
    for (auto b = static_cast<size_t>(thread); b < batches.size();
         b += static_cast<size_t>(thread_count_))
      work(batches[b]);
  });
}

void Predictor::refuse_cut(const std::vector<std::string>& texts,
                           const std::vector<Prediction>& predictions) const {
  for (size_t i = 0; i < texts.size(); ++i)
    if (predictions[i].cut)
      fail(
          "source {}, {}, has over {} tokens (model.maximum_source_length); shorten it, or have "
          "it cut without --strict",
          texts_read_ + i + 1, in_quotes(texts[i]), model_.config.maximum_source_length());
}

std::vector<Prediction> Predictor::predict(const std::vector<std::string>& texts,
                                           const Decoding& decoding, const Report& report,
                                           const std::vector<std::string>& prefixes) {
  std::vector<Prediction> predictions(texts.size());
  std::vector<EncodedPair> encoded(texts.size());
  const std::vector<int64_t> answered = read(texts, predictions, encoded);
  if (decoding.strict) refuse_cut(texts, predictions);
  std::vector<SearchTask> tasks(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    SearchTask& task = tasks[i];
    task.source_length = encoded[i].source_length();
    task.stream = texts_read_ + i;
    if (!prefixes.empty())
      task.prefix = model_.target_vocabulary.encode(model_.codecs.target.split(prefixes[i]));
    task.longest = static_cast<int64_t>(task.prefix.size()) +
                   (decoding.maximum_length > 0 ? decoding.maximum_length
                                                : longest_answer(task.source_length));
  }
  texts_read_ += texts.size();
  std::mutex reporting;
  int64_t done = 0;
  in_batches(encoded, answered, [&](const std::vector<int64_t>& chunk) {
    std::vector<SearchTask> chunk_tasks;
    chunk_tasks.reserve(chunk.size());
    for (const int64_t i : chunk) chunk_tasks.push_back(tasks[static_cast<size_t>(i)]);
    auto found =
        search(decoder(), start(make_batch(encoded, chunk)), chunk_tasks, ends, decoding.search);
    for (size_t i = 0; i < chunk.size(); ++i)
      predictions[static_cast<size_t>(chunk[i])].hypotheses = std::move(found[i]);
    if (!report) return;
    const std::lock_guard lock(reporting);
    done += static_cast<int64_t>(chunk.size());
    report(done, static_cast<int64_t>(answered.size()));
  });
  return predictions;
}

std::vector<std::string> Predictor::best_tokens(const Prediction& prediction) const {
  if (prediction.hypotheses.empty()) return {};
  return model_.target_vocabulary.decode(prediction.hypotheses[0].tokens);
}

std::vector<double> Predictor::log_probabilities(const std::vector<EncodedPair>& pairs) {
  std::vector<double> sums(pairs.size());
  std::vector<int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), 0);
  in_batches(pairs, order, [&](const std::vector<int64_t>& chunk) {
    std::vector<std::vector<int64_t>> targets;
    targets.reserve(chunk.size());
    for (const int64_t i : chunk) targets.push_back(pairs[static_cast<size_t>(i)].target);
    const auto scores = score_targets(decoder(), start(make_batch(pairs, chunk)), targets, ends);
    for (size_t i = 0; i < chunk.size(); ++i)
      sums[static_cast<size_t>(chunk[i])] = std::accumulate(
          scores[i].begin(),
          scores[i].begin() + pairs[static_cast<size_t>(chunk[i])].target_length(), 0.0);
  });
  return sums;
}

double Predictor::loss(const std::vector<EncodedPair>& pairs) {
  double tokens = 0;
  for (const EncodedPair& pair : pairs) tokens += static_cast<double>(pair.target_length());
  tokens = std::max(1.0, tokens);
  if (networks_.size() > 1) {
    const std::vector<double> sums = log_probabilities(pairs);
    return -std::accumulate(sums.begin(), sums.end(), 0.0) / tokens;
  }
  const auto batches = batches_by_length(pairs, sentences_a_batch, 0, 0);
  std::vector<double> losses(batches.size());
  threads_.run([&](int64_t thread) {
    at::NoGradGuard no_gradient;
    for (auto i = static_cast<size_t>(thread); i < batches.size();
         i += static_cast<size_t>(thread_count_))
      losses[i] = networks_[0]->objective(make_batch(pairs, batches[i]), {}, 0.0).item<double>();
  });
  return std::reduce(losses.begin(), losses.end()) / tokens;
}

Evaluation evaluate(Predictor& predictor, const PairModel& model,
                    const std::vector<Example>& examples, const Decoding& decoding,
                    const Predictor::Report& report) {
  std::vector<std::string> sources;
  sources.reserve(examples.size());
  for (const Example& example : examples) sources.push_back(example.source);
  const std::vector<Prediction> predictions = predictor.predict(sources, decoding, report);
  const TextCodec& codec = model.codecs.target;
  Evaluation evaluation;
  evaluation.answers.reserve(examples.size());
  evaluation.lengths.reserve(examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    std::vector<std::vector<std::string>> references;
    references.reserve(examples[i].targets.size());
    for (const std::string& target : examples[i].targets) references.push_back(codec.split(target));
    const auto answer = predictor.best_tokens(predictions[i]);
    const auto length = static_cast<int64_t>(predictions[i].source.size());
    evaluation.cut += predictions[i].cut ? 1 : 0;
    evaluation.errors.add(answer, references);
    evaluation.answers.push_back(codec.join(answer));
    evaluation.lengths.push_back(length);
    evaluation.by_length[length].add(answer, references);
  }
  return evaluation;
}

}  // namespace attend
