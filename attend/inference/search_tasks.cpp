#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attend/inference/growing_text-inl.h"
#include "attend/inference/predictor.h"

namespace attend {

int64_t Predictor::maximum_answer_length() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& network : networks_) least = std::min(least, network->maximum_answer_length());
  return least;
}

SearchTask Predictor::task_of(const std::string& text, const EncodedPair& encoded,
                              const std::string& prefix, const SearchOptions& options) const {
  const std::vector<std::string> begin = model_.codecs.target.split(prefix);
  if (model_.answers_numbers() && !prefix.empty())
    fail("the model answers a number; leave prefixes out");
  SearchTask task;
  task.source_length = encoded.source_length();
  if (model_.config.ranks() && !options.keep_seen)
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
  task.length = model_.config.answer_length(task.source_length);
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

std::string Predictor::token_name(int64_t token, const std::vector<float>& weights,
                                  const Answer& answer, UnknownTokens unknown) const {
  // The language token is not part of the text.
  const int64_t first = model_.text.language_token ? 1 : 0;
  const int64_t words = std::ssize(answer.source) - first;
  if (unknown != UnknownTokens::copy || words < 1 || token != Vocabulary::unknown)
    return model_.target_vocabulary.token(token);
  const auto begin = weights.begin() + first;
  const auto place = std::max_element(begin, begin + words) - weights.begin();
  return answer.source[static_cast<size_t>(place)];
}

void Predictor::put_names(std::vector<Alternative>& alternatives) const {
  for (Alternative& each : alternatives) each.token = model_.target_vocabulary.token(each.id);
}

void Predictor::put_found(std::vector<Candidate> found, const SearchOptions& options,
                          Answer& answer) const {
  const UnknownTokens unknown = unknown_tokens(options);
  for (Candidate& candidate : found) {
    candidate.tokens.reserve(candidate.ids.size());
    for (size_t t = 0; t < candidate.ids.size(); ++t)
      candidate.tokens.push_back(token_name(
          candidate.ids[t], candidate.weights.empty() ? std::vector<float>() : candidate.weights[t],
          answer, unknown));
    candidate.text = model_.codecs.target.join(candidate.tokens);
    for (auto& alternatives : candidate.alternatives) put_names(alternatives);
    if (!options.with_weights) candidate.weights.clear();
    // Without the padding of the batch.
    for (std::vector<float>& row : candidate.weights) row.resize(answer.source.size());
  }
  answer.candidates = std::move(found);
}

void Predictor::watch_task(SearchTask& task, size_t text, const Answer& answer,
                           UnknownTokens unknown, const AnswerWatch& watch) const {
  if (watch.is_stopped) task.is_stopped = [&watch, text] { return watch.is_stopped(text); };
  if (!watch.grows) return;
  task.grows = [this, text, &answer, unknown, &watch, grown = std::vector<Candidate>(),
                texts = std::vector<GrowingText>()](const GrownToken& token) mutable {
    const auto number = static_cast<size_t>(token.answer);
    if (grown.size() <= number) {
      grown.resize(number + 1);
      texts.resize(number + 1, GrowingText(model_.codecs.target));
    }
    Candidate& so_far = grown[number];
    so_far.ids.push_back(token.token);
    so_far.tokens.push_back(token_name(token.token, token.weights, answer, unknown));
    so_far.text = texts[number].add(so_far.tokens.back());
    so_far.log_probabilities.push_back(token.log_probability);
    so_far.log_probability += token.log_probability;
    if (!token.alternatives.empty()) {
      so_far.alternatives.push_back(token.alternatives);
      put_names(so_far.alternatives.back());
    }
    watch.grows(text, number, so_far);
  };
}

}  // namespace attend
