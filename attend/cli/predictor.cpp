#include "attend/cli/predictor.h"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace attend {
namespace {

using at::Tensor;

// Small enough for 1,000 words to be shared out evenly, large enough for full-speed products.
constexpr int64_t sentences_a_batch = 64;

void by_length(const std::vector<EncodedPair>& encoded, std::vector<int64_t>& order) {
  const auto length = [&](int64_t i) { return encoded[static_cast<size_t>(i)].source_length(); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return length(a) < length(b); });
}

}  // namespace

int64_t longest_answer(int64_t source_symbols) { return 3 * source_symbols + 10; }

Predictor::Predictor(const PairModel& model, std::shared_ptr<PairNetwork> network, int64_t threads)
    : model_(model), network_(std::move(network)), threads_(threads), thread_count_(threads) {}

std::vector<int64_t> Predictor::read_frames(const std::vector<std::string>& texts,
                                            std::vector<Prediction>& predictions,
                                            std::vector<EncodedPair>& encoded) const {
  std::vector<int64_t> order;
  order.reserve(texts.size());
  FrameReader reader = model_.frame_reader();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (split_units(texts[i], Units::line).empty()) continue;
    const Tensor frames = reader.read(texts[i]);
    encoded[i].frames = frames.slice(0, 0, model_.model.maximum_source_length());
    predictions[i].cut = frames.size(0) > encoded[i].frames.size(0);
    predictions[i].source =
        frame_names(model_.text.reads_images(), model_.text.frames, encoded[i].source_length());
    order.push_back(static_cast<int64_t>(i));
  }
  by_length(encoded, order);
  return order;
}

std::vector<int64_t> Predictor::read(const std::vector<std::string>& texts,
                                     std::vector<Prediction>& predictions,
                                     std::vector<EncodedPair>& encoded) const {
  std::vector<int64_t> order;
  if (model_.text.reads_frames()) return read_frames(texts, predictions, encoded);
  const auto limit = static_cast<size_t>(model_.model.maximum_source_length());
  for (size_t i = 0; i < texts.size(); ++i) {
    auto symbols = model_.codecs.source.split(texts[i]);
    predictions[i].cut = symbols.size() > limit;
    if (predictions[i].cut) symbols.resize(limit);
    encoded[i].source = model_.source_vocabulary.encode(symbols);
    predictions[i].source = std::move(symbols);
    if (!encoded[i].source.empty()) order.push_back(static_cast<int64_t>(i));
  }
  by_length(encoded, order);
  return order;
}

std::vector<Prediction> Predictor::predict(const std::vector<std::string>& texts,
                                           const BeamOptions& options, const Report& report) {
  std::vector<Prediction> predictions(texts.size());
  std::vector<EncodedPair> encoded(texts.size());
  const std::vector<int64_t> order = read(texts, predictions, encoded);
  const auto count = static_cast<int64_t>(order.size());
  // Small inputs are shared out too, large ones in batches of a good size.
  const int64_t size =
      std::clamp<int64_t>((count + thread_count_ - 1) / thread_count_, 1, sentences_a_batch);
  std::mutex reporting;
  int64_t done = 0;
  threads_.run([&](int64_t thread) {
    for (int64_t begin = thread * size; begin < count; begin += thread_count_ * size) {
      at::NoGradGuard no_gradient;
      const std::vector<int64_t> chunk(order.begin() + begin,
                                       order.begin() + std::min(begin + size, count));
      const Batch batch = make_batch(encoded, chunk);
      std::vector<int64_t> longest;
      longest.reserve(chunk.size());
      for (const int64_t i : chunk)
        longest.push_back(longest_answer(encoded[static_cast<size_t>(i)].source_length()));
      auto found = beam_search(*network_, network_->start(batch.source, batch.source_lengths),
                               longest, {Vocabulary::start, Vocabulary::end}, options);
      for (size_t i = 0; i < chunk.size(); ++i)
        predictions[static_cast<size_t>(chunk[i])].hypotheses = std::move(found[i]);
      if (!report) continue;
      const std::lock_guard lock(reporting);
      done += static_cast<int64_t>(chunk.size());
      report(done, count);
    }
  });
  return predictions;
}

std::vector<std::string> Predictor::best_symbols(const Prediction& prediction) const {
  if (prediction.hypotheses.empty()) return {};
  return model_.target_vocabulary.decode(prediction.hypotheses[0].symbols);
}

double Predictor::loss(const std::vector<EncodedPair>& pairs) {
  const auto batches = batches_by_length(pairs, sentences_a_batch, 0, 0);
  std::vector<double> losses(batches.size()), symbols(batches.size());
  threads_.run([&](int64_t thread) {
    at::NoGradGuard no_gradient;
    for (auto i = static_cast<size_t>(thread); i < batches.size();
         i += static_cast<size_t>(thread_count_)) {
      const Batch batch = make_batch(pairs, batches[i]);
      losses[i] = network_->objective(batch, {}, 0.0).item<double>();
      symbols[i] = static_cast<double>(batch.target_lengths.sum().item<int64_t>());
    }
  });
  return std::reduce(losses.begin(), losses.end()) /
         std::max(1.0, std::reduce(symbols.begin(), symbols.end()));
}

Evaluation evaluate(Predictor& predictor, const PairModel& model,
                    const std::vector<Example>& examples, const BeamOptions& options,
                    const Predictor::Report& report) {
  std::vector<std::string> sources;
  sources.reserve(examples.size());
  for (const Example& example : examples) sources.push_back(example.source);
  const std::vector<Prediction> predictions = predictor.predict(sources, options, report);
  const TextCodec& codec = model.codecs.target;
  Evaluation evaluation;
  evaluation.answers.reserve(examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    std::vector<std::vector<std::string>> references;
    for (const std::string& target : examples[i].targets) references.push_back(codec.split(target));
    const auto answer = predictor.best_symbols(predictions[i]);
    evaluation.errors.add(answer, references);
    evaluation.answers.push_back(codec.join(answer));
    evaluation.by_length[static_cast<int64_t>(predictions[i].source.size())].add(answer,
                                                                                 references);
  }
  return evaluation;
}

}  // namespace attend
