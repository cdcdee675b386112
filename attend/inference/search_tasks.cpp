#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attend/inference/growing_text-inl.h"
#include "attend/inference/predictor.h"

namespace attend {

using at::Tensor;

std::vector<Alternative> alternatives_of(const std::vector<AlternativeToken>& tokens,
                                         const Vocabulary& vocabulary) {
  std::vector<Alternative> alternatives;
  alternatives.reserve(tokens.size());
  for (const AlternativeToken& each : tokens)
    alternatives.push_back({vocabulary.token(each.token), each.log_probability});
  return alternatives;
}

int64_t Predictor::maximum_answer_length() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& network : networks_) least = std::min(least, network->maximum_answer_length());
  return least;
}

SearchTask Predictor::task_of(const std::string& text, const EncodedPair& encoded,
                              const std::string& prefix, const SearchOptions& options) const {
  const std::vector<std::string> begin = model_.codecs.target.split(prefix);
  if (!kind_.is_searched() && !prefix.empty())
    fail("the model answers a {}; leave prefixes out", kind_.name());
  SearchTask task;
  task.source_length = encoded.source_length();
  if (kind_.ranks() && !options.keep_seen)
    task.never = model_.source_vocabulary.encode(model_.codecs.source.split(text));
  task.prefix = model_.target_vocabulary.encode(begin);
  for (size_t i = 0; i < begin.size(); ++i)
    if (task.prefix[i] == Vocabulary::unknown)
      fail("the answer cannot begin with {}, which is not one of the {} tokens of the model",
           in_quotes(begin[i]), model_.target_vocabulary.size() - Vocabulary::unknown - 1);
  const int64_t maximum = maximum_answer_length();
  if (std::ssize(begin) > maximum)
    fail("the answer cannot begin with {} tokens: the model has positions for {}; shorten it",
         begin.size(), maximum);
  const int64_t more = options.maximum_length > 0
                           ? options.maximum_length
                           : std::max(longest_answer(task.source_length), options.minimum_length);
  task.length = kind_.length(task.source_length);
  task.longest = std::min(std::ssize(begin) + more, maximum);
  return task;
}

SearchOptions Predictor::search_options(const SearchOptions& options) const {
  SearchOptions asked = options;
  asked.with_weights |= unknown_tokens(options) == UnknownTokens::copy;
  return asked;
}

SpecialTokens Predictor::special_tokens(const SearchOptions& options) const {
  SpecialTokens special{Vocabulary::bos, Vocabulary::eos, {Vocabulary::padding, Vocabulary::bos}};
  if (unknown_tokens(options) == UnknownTokens::forbid)
    special.never.push_back(Vocabulary::unknown);
  return special;
}

UnknownTokens Predictor::unknown_tokens(const SearchOptions& options) const {
  const auto all = [&](auto has) { return std::all_of(networks_.begin(), networks_.end(), has); };
  if (!options.unknown)
    return all([](const auto& network) { return network->copies(); }) ? UnknownTokens::copy
                                                                      : UnknownTokens::forbid;
  const bool has_tokens = model_.text.source_kind() == nullptr;
  if (*options.unknown == UnknownTokens::copy &&
      (!has_tokens || !all([](const auto& network) { return network->attends(); })))
    fail(
        "an unknown token is copied from the source token with the largest weight, and {}; forbid "
        "or keep unknown tokens",
        has_tokens ? "the model attends to nothing" : "the source has no tokens");
  return *options.unknown;
}

std::string Predictor::token_name(int64_t token, const Tensor& weights,
                                  const Prediction& prediction, UnknownTokens unknown) const {
  // The language token is not part of the text.
  const int64_t first = model_.text.language_token ? 1 : 0;
  const int64_t words = std::ssize(prediction.source) - first;
  if (unknown != UnknownTokens::copy || words < 1 || token != Vocabulary::unknown)
    return model_.target_vocabulary.token(token);
  const int64_t maximum = weights.narrow(0, first, words).argmax().item<int64_t>();
  return prediction.source[static_cast<size_t>(first + maximum)];
}

void Predictor::put_found(std::vector<Hypothesis> found, const SearchOptions& options,
                          Prediction& prediction) const {
  const UnknownTokens unknown = unknown_tokens(options);
  prediction.hypotheses = std::move(found);
  for (Hypothesis& hypothesis : prediction.hypotheses) {
    std::vector<std::string>& tokens = prediction.tokens.emplace_back();
    tokens.reserve(hypothesis.tokens.size());
    for (size_t t = 0; t < hypothesis.tokens.size(); ++t) {
      const Tensor weights =
          hypothesis.weights.defined() ? hypothesis.weights[static_cast<int64_t>(t)] : Tensor();
      tokens.push_back(token_name(hypothesis.tokens[t], weights, prediction, unknown));
    }
    if (!options.with_weights) hypothesis.weights = Tensor();
  }
}

void Predictor::watch_task(SearchTask& task, size_t text, const Prediction& prediction,
                           UnknownTokens unknown, const AnswerWatch& watch) const {
  if (watch.is_stopped) task.is_stopped = [&watch, text] { return watch.is_stopped(text); };
  if (!watch.grows) return;
  task.grows = [this, text, &prediction, unknown, &watch, answers = std::vector<Candidate>(),
                texts = std::vector<GrowingText>()](const GrownToken& grown) mutable {
    const auto number = static_cast<size_t>(grown.answer);
    if (answers.size() <= number) {
      answers.resize(number + 1);
      texts.resize(number + 1, GrowingText(model_.codecs.target));
    }
    Candidate& answer = answers[number];
    answer.tokens.push_back(token_name(grown.token, grown.weights, prediction, unknown));
    answer.text = texts[number].add(answer.tokens.back());
    answer.log_probabilities.push_back(grown.log_probability);
    answer.log_probability += grown.log_probability;
    if (!grown.alternatives.empty())
      answer.alternatives.push_back(alternatives_of(grown.alternatives, model_.target_vocabulary));
    watch.grows(text, number, answer);
  };
}

}  // namespace attend
