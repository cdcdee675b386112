#include "attend/inference/predictor.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "attend/inference/model.h"
#include "attend/nn/steady_rows.h"

namespace attend {
namespace {

using at::Tensor;

// Small enough for 1,000 words to be shared out evenly, large enough for full-speed products.
constexpr int64_t sentences_a_batch = 64;

constexpr SpecialTokens special{Vocabulary::bos, Vocabulary::eos};

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

std::vector<int64_t> in_order(size_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Tells predictions in the order of their texts, each once it and those before it are there.
class InOrder {
 public:
  InOrder(std::vector<Prediction>& predictions, const std::vector<int64_t>& awaited,
          const Predictor::Take& take)
      : predictions_(predictions), take_(take), is_there_(predictions.size(), true) {
    for (const int64_t i : awaited) is_there_[static_cast<size_t>(i)] = false;
    tell();
  }

  void add(const std::vector<int64_t>& texts, std::vector<std::vector<Hypothesis>> found) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto text = static_cast<size_t>(texts[i]);
      predictions_[text].hypotheses = std::move(found[i]);
      is_there_[text] = true;
    }
    tell();
  }

 private:
  void tell() {
    for (; next_ < predictions_.size() && is_there_[next_]; ++next_)
      take_(next_, std::move(predictions_[next_]));
  }

  std::vector<Prediction>& predictions_;
  const Predictor::Take& take_;
  std::vector<bool> is_there_;
  size_t next_ = 0;
  std::mutex mutex_;
};

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

// What is known of texts before they are answered.
struct Predictor::Reading {
  std::vector<Prediction> predictions;
  std::vector<EncodedPair> encoded;
  std::vector<int64_t> answered;  // which texts can be
};

Predictor::Predictor(const PairModel& model, std::vector<std::shared_ptr<PairNetwork>> networks,
                     int64_t threads, bool strict)
    : model_(model),
      networks_(std::move(networks)),
      ensemble_(as_step_models(networks_)),
      threads_(threads),
      strict_(strict) {}

void Predictor::place(const Devices& devices) {
  for (const auto& network : networks_) network->place(devices);
}

void Predictor::pack(WeightType weights) {
  for (const auto& network : networks_)
    if (!network->pack(weights) && weights != WeightType::float32)
      fail(
          "weights of bfloat16 and int8 are for Transformers, language models and recurrent "
          "decoders on the CPU that read all keys by softmax, without biases, rotation or copies; "
          "take float32");
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

void Predictor::read_text(const std::string& text, Prediction& prediction,
                          EncodedPair& encoded) const {
  auto tokens = model_.codecs.source.split(text);
  prediction.truncated = model_.truncate_source(tokens);
  encoded.source = model_.source_ids(tokens);
  prediction.source = std::move(tokens);
}

Predictor::Reading Predictor::read(const std::vector<std::string>& texts) const {
  Reading reading;
  reading.predictions.resize(texts.size());
  reading.encoded.resize(texts.size());
  reading.answered.reserve(texts.size());
  FrameReader reader = model_.frame_reader();
  for (size_t i = 0; i < texts.size(); ++i) {
    Prediction& prediction = reading.predictions[i];
    EncodedPair& encoded = reading.encoded[i];
    try {
      const bool blank = split_words(texts[i]).empty();
      if (!model_.text.reads_frames()) {
        // White space asks nothing, though characters and bytes of it are tokens; a text goes on
        // behind it.
        if (!blank || model_.config.continues()) read_text(texts[i], prediction, encoded);
      } else if (!blank) {
        encoded.frames = model_.source_frames(texts[i], reader, &prediction.truncated);
        prediction.source =
            frame_names(model_.text.reads_images(), model_.text.frames, encoded.source_length());
      }
    } catch (const Error& error) {
      throw SourceError(i, error.what());
    }
    if (strict_ && prediction.truncated)
      throw SourceError(
          i, fmt::format("{} has over {} tokens (model.maximum_source_length); shorten it, or have "
                         "it cut without --strict",
                         in_quotes(texts[i]), model_.config.chosen().maximum_source_length()));
    // What goes on with its source can begin with none.
    if (encoded.source_length() > 0 || wants_equal_lengths())
      reading.answered.push_back(static_cast<int64_t>(i));
  }
  return reading;
}

void Predictor::in_batches(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& order,
                           const std::function<void(const std::vector<int64_t>&)>& work) {
  const auto count = static_cast<int64_t>(order.size());
  // Small inputs are shared out too, large ones in batches of a good size.
  const auto size = static_cast<size_t>(
      std::clamp<int64_t>((count + threads_.count() - 1) / threads_.count(), 1, sentences_a_batch));
  std::vector<std::vector<int64_t>> batches;
  std::map<int64_t, size_t> open;  // the batch of each length that is not full
  for (const int64_t i : order) {
    // A batch has sources of one length, as padding would change the last bits of its answers.
    const int64_t length = pairs[static_cast<size_t>(i)].source_length();
    const auto [found, is_new] = open.try_emplace(length, batches.size());
    if (!is_new && batches[found->second].size() == size) found->second = batches.size();
    if (found->second == batches.size()) batches.emplace_back();
    batches[found->second].push_back(i);
  }
  threads_.run(static_cast<int64_t>(batches.size()), [&](int64_t b) {
    at::NoGradGuard no_gradient;
    const SteadyRows steady;
    work(batches[static_cast<size_t>(b)]);
  });
}

void Predictor::predict_each(const std::vector<std::string>& texts, const SearchOptions& options,
                             const std::vector<std::string>& prefixes, const Take& take) {
  options.check();
  if (!prefixes.empty() && prefixes.size() != texts.size())
    fail("[predict] {} prefixes for {} sources; give one a source, or none", prefixes.size(),
         texts.size());
  Reading reading = read(texts);
  std::vector<SearchTask> tasks(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    SearchTask& task = tasks[i];
    task.source_length = reading.encoded[i].source_length();
    if (options.sampling) task.stream = options.sampling->first + i;
    try {
      if (!prefixes.empty())
        task.prefix = model_.target_vocabulary.encode(model_.codecs.target.split(prefixes[i]));
    } catch (const Error& error) {
      throw SourceError(i, error.what());
    }
    task.length = model_.config.answer_length(task.source_length);
    task.longest =
        static_cast<int64_t>(task.prefix.size()) +
        (options.maximum_length > 0 ? options.maximum_length : longest_answer(task.source_length));
  }
  InOrder telling(reading.predictions, reading.answered, take);
  in_batches(reading.encoded, reading.answered, [&](const std::vector<int64_t>& batch) {
    std::vector<SearchTask> of_batch;
    of_batch.reserve(batch.size());
    for (const int64_t i : batch) of_batch.push_back(std::move(tasks[static_cast<size_t>(i)]));
    telling.add(batch, search(decoder(), start(make_batch(reading.encoded, batch)), of_batch,
                              special, options));
  });
}

std::vector<Prediction> Predictor::predict(const std::vector<std::string>& texts,
                                           const SearchOptions& options,
                                           const std::vector<std::string>& prefixes) {
  std::vector<Prediction> predictions(texts.size());
  predict_each(texts, options, prefixes, [&](size_t index, Prediction prediction) {
    predictions[index] = std::move(prediction);
  });
  return predictions;
}

std::vector<std::string> Predictor::best_tokens(const Prediction& prediction) const {
  if (prediction.hypotheses.empty()) return {};
  return model_.target_vocabulary.decode(prediction.hypotheses[0].tokens);
}

std::vector<double> Predictor::log_probabilities(const std::vector<EncodedPair>& pairs) {
  std::vector<double> sums(pairs.size());
  in_batches(pairs, in_order(pairs.size()), [&](const std::vector<int64_t>& batch) {
    std::vector<std::vector<int64_t>> targets;
    targets.reserve(batch.size());
    for (const int64_t i : batch) {
      const EncodedPair& pair = pairs[static_cast<size_t>(i)];
      targets.push_back(pair.target);
      if (!pair.no_eos) targets.back().push_back(special.eos);
    }
    const auto scores = score_targets(decoder(), start(make_batch(pairs, batch)), targets, special);
    for (size_t i = 0; i < batch.size(); ++i)
      sums[static_cast<size_t>(batch[i])] =
          std::accumulate(scores[i].begin(), scores[i].end(), 0.0);
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
  threads_.run(static_cast<int64_t>(batches.size()), [&](int64_t b) {
    at::NoGradGuard no_gradient;
    const auto i = static_cast<size_t>(b);
    losses[i] = networks_[0]->objective(make_batch(pairs, batches[i]), {}, 0.0).item<double>();
  });
  return std::reduce(losses.begin(), losses.end()) / tokens;
}

std::vector<Tensor> Predictor::first_steps(const std::vector<std::string>& texts) {
  const Reading reading = read(texts);
  std::vector<Tensor> firsts(texts.size());
  in_batches(reading.encoded, reading.answered, [&](const std::vector<int64_t>& batch) {
    StepState state = start(make_batch(reading.encoded, batch));
    const Tensor bos = at::full({static_cast<int64_t>(batch.size())}, special.bos, at::kLong);
    const Tensor found = decoder().step(bos, state, /*with_weights=*/false).log_probabilities;
    for (size_t i = 0; i < batch.size(); ++i)
      firsts[static_cast<size_t>(batch[i])] = found[static_cast<int64_t>(i)].to(at::kFloat);
  });
  return firsts;
}

Tensor Predictor::steps(const std::vector<int64_t>& source) {
  const std::vector<EncodedPair> pairs = {{source, {}}};
  std::vector<Tensor> found;
  in_batches(pairs, {0}, [&](const std::vector<int64_t>& batch) {
    StepState state = start(make_batch(pairs, batch));
    Tensor token = at::full({1}, special.bos, at::kLong);
    for (size_t i = 0; i < source.size(); ++i) {
      found.push_back(decoder().step(token, state, /*with_weights=*/false).log_probabilities);
      token = found.back().argmax(1);
    }
  });
  return found.empty() ? Tensor() : at::cat(found);
}

std::vector<Tensor> Predictor::encodings(const std::vector<std::string>& texts,
                                         std::vector<std::vector<std::string>>& tokens) {
  if (networks_.size() > 1)
    fail("[embed] the vectors of {} models have no mean; load one of them", networks_.size());
  Reading reading = read(texts);
  std::vector<Tensor> vectors(texts.size());
  in_batches(reading.encoded, reading.answered, [&](const std::vector<int64_t>& batch) {
    const Batch sources = make_batch(reading.encoded, batch);
    const Tensor found =
        networks_[0]->encodings(sources.source, sources.source_lengths).to(at::kCPU, at::kFloat);
    for (size_t i = 0; i < batch.size(); ++i)
      vectors[static_cast<size_t>(batch[i])] = found[static_cast<int64_t>(i)];
  });
  tokens.clear();
  for (Prediction& prediction : reading.predictions) tokens.push_back(std::move(prediction.source));
  return vectors;
}

}  // namespace attend
