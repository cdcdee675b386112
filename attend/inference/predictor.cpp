#include "attend/inference/predictor.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>

#include "attend/decode/batch_invariance.h"
#include "attend/decode/ensemble.h"
#include "attend/decode/not_a_number.h"
#include "attend/inference/length_batches-inl.h"
#include "attend/inference/reading-inl.h"
#include "attend/models/answer_codec.h"
#include "attend/models/text_comparison.h"

namespace attend {
namespace {

using at::Tensor;

// 32 MB of log probabilities.
constexpr int64_t numbers_per_batch = int64_t{1} << 22;

std::vector<int64_t> in_order(size_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Whether a token with the unknown id is a mask: the tokenizer knows it, or the model fills it in.
bool is_asked(const PairModel& model, const std::string& token) {
  const TextCodec& codec = model.codecs.source;
  return codec.tokenizer ? codec.knows(token, model.source_vocabulary)
                         : model.answer_kind().fills() && token == default_mask;
}

// Comparisons with NaN are false: NaN would be neither the best value nor below a bound.
void check_numbers(const Tensor& log_probabilities) {
  if (at::isnan(log_probabilities).any().item<bool>())
    throw NotANumber("[predict] the model's probabilities are NaN");
}

// Counts a running call.
class CountedCall {
 public:
  explicit CountedCall(std::atomic<int64_t>& calls) : calls_(calls), all_(++calls) {}
  ~CountedCall() { --calls_; }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

  int64_t all() const { return all_; }  // running calls, including this one

 private:
  std::atomic<int64_t>& calls_;
  int64_t all_;
};

}  // namespace

Predictor::Predictor(PairModel model, const ModelOptions& options,
                     const std::vector<std::shared_ptr<PairNetwork>>& others)
    : model_(std::move(model)),
      kind_(model_.answer_kind()),
      networks_{model_.network},
      threads_(options.threads > 0 ? options.threads
                                   : std::max(1U, std::thread::hardware_concurrency())),
      strict_(options.strict),
      skips_bad_(options.skip_bad) {
  networks_.insert(networks_.end(), others.begin(), others.end());
}

void Predictor::place(const Devices& devices) {
  for (const auto& network : networks_) network->place(devices);
}

void Predictor::pack(WeightType weights) {
  for (const auto& network : networks_)
    if (!network->pack(weights) && weights != WeightType::float32)
      fail(
          "bfloat16 and int8 weights need layers on the CPU that read by softmax, without experts "
          "or copies, and with biases of distance only; take float32");
}

std::unique_ptr<DecodingState> Predictor::start(const Batch& batch) {
  std::vector<std::unique_ptr<DecodingState>> members;
  members.reserve(networks_.size());
  for (const auto& network : networks_)
    members.push_back(network->start(batch.source, batch.source_lengths, {}));
  if (members.size() == 1) return std::move(members[0]);
  return std::make_unique<Ensemble>(std::move(members));
}

bool Predictor::wants_equal_lengths() const {
  return std::any_of(networks_.begin(), networks_.end(),
                     [](const auto& network) { return network->wants_equal_lengths(); });
}

bool Predictor::may_pad(const SearchOptions& options) const {
  const SearchOptions asked = search_options(options);
  return !asked.with_weights && asked.coverage_penalty == 0 &&
         std::all_of(networks_.begin(), networks_.end(),
                     [&](const auto& network) { return network->pads_exactly(); });
}

void Predictor::read_text(const std::string& text, const TextCodec& codec, Answer& answer,
                          EncodedPair& encoded) const {
  SourceTokens tokens = codec.split_source(text);
  answer.truncated = model_.truncate_source(tokens.names, tokens.second);
  encoded.source = model_.source_ids(tokens);
  for (size_t i = 0; i < tokens.names.size(); ++i)
    if (model_.vocabulary_id(encoded.source[i]) == Vocabulary::unknown &&
        !is_asked(model_, tokens.names[i]))
      answer.unknown.push_back(tokens.names[i]);
  const std::string_view known = model_.config.row().known_source;
  if (!known.empty() && !answer.unknown.empty())
    fail("{} {} was not in training; leave it out, or train a model with it", known,
         in_quotes(answer.unknown[0]));
  answer.source = std::move(tokens.names);
}

Predictor::Reading Predictor::read(const std::vector<std::string>& texts) const {
  return read(texts, model_.codecs.source);
}

Predictor::Reading Predictor::read(const std::vector<std::string>& texts,
                                   const TextCodec& codec) const {
  Reading reading;
  reading.answers.resize(texts.size());
  reading.encoded.resize(texts.size());
  reading.answered.reserve(texts.size());
  const std::shared_ptr<FrameReader> reader = model_.frame_reader();
  for (size_t i = 0; i < texts.size(); ++i) {
    Answer& answer = reading.answers[i];
    EncodedPair& encoded = reading.encoded[i];
    try {
      const bool blank = split_words(texts[i]).empty();
      if (reader == nullptr) {
        // A blank text is not answered, although it may have tokens; it can only be continued.
        if (!blank || kind_.continues()) read_text(texts[i], codec, answer, encoded);
      } else if (!blank) {
        const int64_t converted_to_grey = reader->converted_to_grey();
        encoded.frames = reader->read(texts[i]);
        answer.converted_to_grey = reader->converted_to_grey() > converted_to_grey;
        answer.truncated = model_.truncate_frames(encoded.frames);
        answer.source = model_.text.source_kind()->frame_names(texts[i], model_.text.frames,
                                                               encoded.source_length());
      }
      if (strict_ && answer.truncated)
        fail(
            "{} has over {} tokens (model.maximum_source_length); shorten it, or leave out "
            "--strict to cut it",
            in_quotes(texts[i]), model_.maximum_source_length());
    } catch (const Error& error) {
      answer.error = error.what();
      continue;
    }
    // A model that continues its source can start from an empty one.
    if (encoded.source_length() > 0 || wants_equal_lengths())
      reading.answered.push_back(static_cast<int64_t>(i));
  }
  return reading;
}

Predictor::Reading Predictor::read_all(const std::vector<std::string>& texts) const {
  Reading reading = read(texts);
  for (size_t i = 0; i < texts.size(); ++i)
    if (!reading.answers[i].error.empty()) throw SourceError(i, reading.answers[i].error);
  return reading;
}

void Predictor::in_batches(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& order,
                           int64_t maximum, const BatchWork& work, const BatchWork& tell,
                           bool may_pad) {
  const auto count = static_cast<int64_t>(order.size());
  const CountedCall call(calls_);
  // Small inputs are also distributed over this call's share of the threads; large ones form full
  // batches.
  const int64_t threads = std::max<int64_t>(1, threads_.count() / call.all());
  const auto size =
      static_cast<size_t>(std::clamp<int64_t>((count + threads - 1) / threads, 1, maximum));
  const auto batches = length_batches(pairs, order, size, may_pad);
  const auto compute = [&](int64_t b) {
    at::NoGradGuard no_gradient;
    const BatchInvariantGuard invariant;
    work(batches[static_cast<size_t>(b)]);
  };
  const auto tell_batch = [&](int64_t b) { tell(batches[static_cast<size_t>(b)]); };
  threads_.run(static_cast<int64_t>(batches.size()), compute,
               tell ? std::function<void(int64_t)>(tell_batch) : nullptr);
}

Predictor::FirstSteps Predictor::mean_first_steps(const std::vector<EncodedPair>& sources,
                                                  const std::vector<int64_t>& batch,
                                                  bool with_weights) {
  const Batch examples = make_batch(sources, batch);
  // The mean of several probabilities is a probability, too.
  const bool is_mean = kind_.has_probabilities() && networks_.size() > 1;
  FirstSteps mean;
  auto& [steps, weights] = mean;
  for (const auto& network : networks_) {
    const StepResult one =
        network->start(examples.source, examples.source_lengths, {})
            ->step(at::full({std::ssize(batch)}, Vocabulary::bos, at::kLong), with_weights, {});
    const auto share = [&](const Tensor& part) {
      return part.to(at::kCPU, at::kDouble) / static_cast<double>(networks_.size());
    };
    const Tensor& values = one.log_probabilities;
    const Tensor part = share(is_mean ? values.to(at::kDouble).exp() : values);
    steps = steps.defined() ? steps + part : part;
    if (!one.weights.defined()) continue;
    weights = weights.defined() ? weights + share(one.weights) : share(one.weights);
  }
  if (is_mean) steps = steps.log();
  return mean;
}

void Predictor::answer_by_step(Reading& reading, const std::vector<int64_t>& batch,
                               const SearchOptions& options) {
  std::vector<EncodedPair> parts;
  std::vector<size_t> ends;  // index after the parts of each source
  for (const int64_t i : batch) {
    for (EncodedPair& part : kind_.parts(model_, reading.encoded[static_cast<size_t>(i)]))
      parts.push_back(std::move(part));
    ends.push_back(parts.size());
  }
  std::vector<Tensor> steps(parts.size()), weights(parts.size());
  for (const auto& group :
       length_batches(parts, in_order(parts.size()), sentences_per_batch, may_pad(options))) {
    const auto [values, rows] = mean_first_steps(parts, group, options.with_weights);
    for (size_t i = 0; i < group.size(); ++i) {
      const auto part = static_cast<size_t>(group[i]);
      steps[part] = values[static_cast<int64_t>(i)].contiguous();
      if (rows.defined()) weights[part] = rows[static_cast<int64_t>(i)].to(at::kFloat).contiguous();
    }
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto text = static_cast<size_t>(batch[i]);
    const size_t first = i == 0 ? 0 : ends[i - 1];
    AskedSource asked{.text = reading.texts[text], .steps = {}, .options = options};
    for (size_t part = first; part < ends[i]; ++part)
      asked.steps.emplace_back(steps[part].data_ptr<double>(),
                               static_cast<size_t>(steps[part].numel()));
    Answer& answer = reading.answers[text];
    for (StepAnswer& read : kind_.read_steps(model_, asked)) {
      Candidate& candidate = answer.candidates.emplace_back(candidate_of(std::move(read)));
      if (!weights[first].defined()) continue;
      const auto* row = weights[first].data_ptr<float>();
      candidate.weights.assign(candidate.ids.size(), {row, row + answer.source.size()});
    }
    if (answer.candidates.empty())
      put_failure(answer,
                  NotANumber(fmt::format("[predict] the model's {} is not finite", kind_.name())));
  }
}

Candidate Predictor::candidate_of(StepAnswer read) const {
  Candidate candidate;
  candidate.number = read.number;
  candidate.span = read.span;
  candidate.tokens = std::move(read.tokens);
  candidate.text = read.text ? std::move(*read.text) : model_.codecs.target.join(candidate.tokens);
  candidate.ids = std::move(read.ids);
  candidate.log_probabilities = std::move(read.log_probabilities);
  candidate.log_probability = read.log_probability.value_or(
      std::reduce(candidate.log_probabilities.begin(), candidate.log_probabilities.end()));
  candidate.labels = std::move(read.labels);
  candidate.score = read.span ? std::exp(candidate.log_probability) : candidate.log_probability;
  candidate.complete = true;
  return candidate;
}

void Predictor::put_failure(Answer& answer, const NotANumber& error) const {
  if (!skips_bad_) throw error;
  answer.error = error.what();
  answer.is_diverged = true;
}

void Predictor::check(const SearchOptions& options, bool has_prefixes) const {
  options.check();
  const bool has_beam = options.beam > 1 && !kind_.is_span();
  if (!kind_.is_searched() && (has_beam || options.sampling || has_prefixes))
    fail("the model answers a {} without a search; leave beam, samples and prefixes out",
         kind_.name());
  if (options.minimum_length > maximum_answer_length())
    fail(
        "[predict] minimum_length {}: the model has positions for {} tokens of an answer; lower it",
        options.minimum_length, maximum_answer_length());
  model_.codecs.source.in_language(options.source_language);
  const TextCodec target = answer_codec(model_, options.target_language);
  if (kind_.is_searched() && target.tokenizer && target.tokenizer->language_token().empty() &&
      !target.tokenizer->languages().empty())
    fail(
        "the model translates into {} languages, and none is chosen; name one by --to, by to in a "
        "request, or by data.target_language",
        target.tokenizer->languages().size());
}

std::vector<std::vector<double>> Predictor::token_log_probabilities(
    const std::vector<EncodedPair>& pairs) {
  if (!kind_.has_probabilities())
    fail("the model answers {}s, which have no probabilities", kind_.name());
  std::vector<std::vector<double>> found(pairs.size());
  const auto score = [&](const std::vector<int64_t>& batch) {
    const Batch examples = make_batch(pairs, batch);
    std::vector<Tensor> network_values;
    for (const auto& network : networks_) {
      const Tensor all = network->log_probabilities(examples, {});
      network_values.push_back(all.gather(2, examples.target.to(all.device()).unsqueeze(2))
                                   .squeeze(2)
                                   .to(at::kCPU, at::kDouble));
    }
    // log((1 / n) sum_m p_m)
    const Tensor tokens =
        at::stack(network_values).logsumexp(0) - std::log(static_cast<double>(networks_.size()));
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto pair = static_cast<size_t>(batch[i]);
      const auto* first = tokens.data_ptr<double>() + static_cast<int64_t>(i) * tokens.size(1);
      found[pair].assign(first, first + pairs[pair].target_length());
      check_numbers(tokens[static_cast<int64_t>(i)].narrow(0, 0, pairs[pair].target_length()));
    }
  };
  int64_t longest = 1;
  for (const EncodedPair& pair : pairs) longest = std::max(longest, pair.target_length());
  const int64_t maximum = numbers_per_batch / (longest * model_.target_vocabulary.size());
  in_batches(pairs, in_order(pairs.size()), std::clamp<int64_t>(maximum, 1, sentences_per_batch),
             score);
  return found;
}

std::vector<double> Predictor::log_probabilities(const std::vector<EncodedPair>& pairs) {
  std::vector<double> sums;
  sums.reserve(pairs.size());
  for (const std::vector<double>& tokens : token_log_probabilities(pairs))
    sums.push_back(std::accumulate(tokens.begin(), tokens.end(), 0.0));
  return sums;
}

double Predictor::loss(const std::vector<EncodedPair>& pairs) {
  const auto terms = static_cast<double>(std::max<int64_t>(1, kind_.loss_terms(pairs)));
  if (networks_.size() > 1) return loss_of_ensemble(pairs) / terms;
  const auto batches = batches_by_length(pairs, sentences_per_batch, 0, 0);
  std::vector<double> losses(batches.size());
  threads_.run(static_cast<int64_t>(batches.size()), [&](int64_t b) {
    at::NoGradGuard no_gradient;
    const auto i = static_cast<size_t>(b);
    losses[i] = networks_[0]->objective(make_batch(pairs, batches[i]), {}, 0.0).item<double>();
  });
  return std::reduce(losses.begin(), losses.end()) / terms;
}

double Predictor::loss_of_ensemble(const std::vector<EncodedPair>& pairs) {
  const auto all = token_log_probabilities(pairs);
  double sum = 0;
  for (size_t i = 0; i < pairs.size(); ++i)
    for (size_t t = 0; t < all[i].size(); ++t) {
      const bool hidden = t < pairs[i].target.size() && !kind_.is_span() &&
                          pairs[i].target[t] == Vocabulary::padding;
      if (!hidden) sum -= all[i][t];
    }
  return sum;
}

std::vector<Tensor> Predictor::first_steps(const std::vector<std::string>& texts) {
  const Reading reading = read_all(texts);
  std::vector<Tensor> firsts(texts.size());
  each_first_step(reading.encoded, reading.answered,
                  [&](size_t text, const Tensor& found) { firsts[text] = found; });
  return firsts;
}

void Predictor::each_first_step(const std::vector<EncodedPair>& pairs, const TakeStep& take,
                                const BatchWork& tell) {
  each_first_step(pairs, in_order(pairs.size()), take, tell);
}

void Predictor::each_first_step(const std::vector<EncodedPair>& pairs,
                                const std::vector<int64_t>& order, const TakeStep& take,
                                const BatchWork& tell) {
  const auto work = [&](const std::vector<int64_t>& batch) {
    const auto state = start(make_batch(pairs, batch));
    const Tensor bos = at::full({static_cast<int64_t>(batch.size())}, Vocabulary::bos, at::kLong);
    const Tensor found = state->step(bos, /*with_weights=*/false, {}).log_probabilities;
    check_numbers(found);
    for (size_t i = 0; i < batch.size(); ++i)
      take(static_cast<size_t>(batch[i]), found[static_cast<int64_t>(i)].to(at::kFloat));
  };
  in_batches(pairs, order, sentences_per_batch, work, tell);
}

Tensor Predictor::steps(const std::vector<int64_t>& source) {
  const std::vector<EncodedPair> pairs = {{source, {}}};
  std::vector<Tensor> found;
  in_batches(pairs, {0}, 1, [&](const std::vector<int64_t>& batch) {
    const auto state = start(make_batch(pairs, batch));
    Tensor token = at::full({1}, Vocabulary::bos, at::kLong);
    for (size_t i = 0; i < source.size(); ++i) {
      found.push_back(state->step(token, /*with_weights=*/false, {}).log_probabilities);
      check_numbers(found.back());
      token = found.back().argmax(1);
    }
  });
  return found.empty() ? Tensor() : at::cat(found);
}

std::vector<EncodedText> Predictor::encodings(const std::vector<std::string>& texts,
                                              int64_t skipped) {
  if (networks_.size() > 1)
    fail("[embed] the vectors of {} models have no mean; load one of them", networks_.size());
  const auto* comparison = dynamic_cast<const TextComparison*>(networks_[0].get());
  if (skipped > 0 && comparison == nullptr)
    fail("[embed] a model of type {} has no prompts", model_.config.type);
  Reading reading = skips_bad_ ? read(texts) : read_all(texts);
  std::vector<EncodedText> encoded(texts.size());
  in_batches(reading.encoded, reading.answered, sentences_per_batch,
             [&](const std::vector<int64_t>& batch) {
               const Batch sources = make_batch(reading.encoded, batch);
               const Tensor found = networks_[0]
                                        ->encodings(sources.source, sources.source_lengths, {})
                                        .to(at::kCPU, at::kFloat);
               for (size_t i = 0; i < batch.size(); ++i) {
                 EncodedText& text = encoded[static_cast<size_t>(batch[i])];
                 text.vectors = found[static_cast<int64_t>(i)];
                 const auto& read = reading.answers[static_cast<size_t>(batch[i])].source;
                 if (std::ssize(read) <= skipped) continue;
                 text.whole = skipped > 0 ? comparison->text_vector_after(text.vectors, skipped)
                                          : networks_[0]->text_vector(text.vectors);
               }
             });
  for (size_t i = 0; i < texts.size(); ++i) {
    Answer& read_text = reading.answers[i];
    encoded[i].tokens = std::move(read_text.source);
    encoded[i].truncated = read_text.truncated;
    encoded[i].error = std::move(read_text.error);
  }
  return encoded;
}

}  // namespace attend
