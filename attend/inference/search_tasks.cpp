#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attend/inference/predictor.h"

namespace attend {

int64_t Predictor::maximum_answer_length() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& network : networks_) least = std::min(least, network->maximum_answer_length());
  return least;
}

SearchTask Predictor::task_of(const std::string& text, const EncodedPair& encoded,
                              const Request& request, const TextCodec& codec) const {
  const SearchOptions& options = request.options;
  const std::string language = codec.tokenizer ? codec.tokenizer->language_token() : "";
  std::vector<std::string> begin = codec.split(request.prefix);
  if (begin.empty() && !language.empty()) begin = {language};
  if (!kind_.is_searched() && !request.prefix.empty())
    fail("the model answers a {}; leave prefixes out", kind_.name());
  SearchTask task;
  task.number = request.number;
  task.streams = request.streams;
  task.source_length = encoded.source_length();
  if (kind_.ranks() && !options.keep_seen)
    task.never = model_.source_vocabulary.encode(model_.codecs.source.split(text));
  task.prefix = model_.target_vocabulary.encode(begin);
  task.certain = language.empty() ? 0 : 1;
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

std::string Predictor::token_name(const Candidate& candidate, size_t t, const Answer& answer,
                                  UnknownTokens unknown) const {
  // The language token is not part of the text.
  const int64_t first = model_.text.language_token ? 1 : 0;
  const int64_t words = std::ssize(answer.source) - first;
  const int64_t id = candidate.ids[t];
  if (unknown != UnknownTokens::copy || words < 1 || id != Vocabulary::unknown)
    return model_.target_vocabulary.token(id);
  const auto begin = candidate.weights[t].begin() + first;
  return answer.source[static_cast<size_t>(std::max_element(begin, begin + words) - begin + first)];
}

std::vector<Alternative> Predictor::named(std::vector<Alternative> alternatives) const {
  for (Alternative& each : alternatives) each.token = model_.target_vocabulary.token(each.id);
  return alternatives;
}

void Predictor::put_found(std::vector<Candidate> found, const SearchOptions& options,
                          Answer& answer) const {
  const UnknownTokens unknown = unknown_tokens(options);
  for (Candidate& candidate : found) {
    candidate.tokens.reserve(candidate.ids.size());
    for (size_t t = 0; t < candidate.ids.size(); ++t)
      candidate.tokens.push_back(token_name(candidate, t, answer, unknown));
    candidate.text = model_.codecs.target.join(candidate.tokens);
    for (auto& alternatives : candidate.alternatives) alternatives = named(std::move(alternatives));
    if (!options.with_weights) candidate.weights.clear();
    // Without the padding of the batch.
    for (std::vector<float>& row : candidate.weights) row.resize(answer.source.size());
  }
  answer.candidates = std::move(found);
}

}  // namespace attend
