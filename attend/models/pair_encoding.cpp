#include <span>

#include "attend/base/error.h"
#include "attend/models/pair_model.h"

namespace attend {
namespace {

std::vector<int64_t> looked_up(std::span<const int32_t> numbers, const std::vector<int64_t>& ids) {
  std::vector<int64_t> result;
  result.reserve(numbers.size());
  for (const int32_t number : numbers) result.push_back(ids[static_cast<size_t>(number)]);
  return result;
}

}  // namespace

bool PairModel::truncate_frames(at::Tensor& source) const {
  const bool over = source.size(0) > maximum_source_length();
  source = source.slice(0, 0, maximum_source_length());
  return over;
}

std::shared_ptr<FrameReader> PairModel::frame_reader() const {
  if (frames != nullptr) return frames;
  const SourceKind* kind = text.source_kind();
  return kind == nullptr ? nullptr : kind->reader(text.frames);
}

std::vector<PairModel::TokenRange> PairModel::excess_tokens(int64_t tokens, int64_t second) const {
  const int64_t maximum = maximum_source_length();
  const int64_t over = tokens - maximum;
  if (over <= 0) return {};
  const bool is_pair = second < tokens;
  const auto [before, between, after] = codecs.source.margins(is_pair);
  const bool left = codecs.source.cuts_left();
  if (!is_pair) {
    const int64_t begin =
        left ? std::min(before, maximum) : tokens - std::min(after, maximum) - over;
    if (answer_kind().keeps_end()) return {{0, over}};
    return {{begin, begin + over}};
  }
  const KeptTokens all{second - between - before, tokens - after - second};
  const int64_t room = maximum - before - between - after;
  if (room < 2)
    fail("model.maximum_source_length is {}, and a pair has {} special tokens; take {} or more",
         maximum, before + between + after, before + between + after + 2);
  // The parts of a long second text are read one after another.
  const KeptTokens kept = answer_kind().is_span()
                              ? KeptTokens{std::min(all.first, room / 2), all.second}
                              : kept_of_two(all, room);
  std::vector<TokenRange> excess;
  const auto drop = [&](int64_t begin, int64_t count, int64_t keep) {
    if (left && keep < count) excess.push_back({begin, begin + count - keep});
    if (!left && keep < count) excess.push_back({begin + keep, begin + count});
  };
  drop(before, all.first, kept.first);
  drop(second, all.second, kept.second);
  return excess;
}

void PairModel::mark_second_text(std::vector<int64_t>& ids, int64_t second) const {
  for (auto i = static_cast<size_t>(second); i < ids.size(); ++i)
    ids[i] += source_vocabulary.size();
}

std::vector<int64_t> PairModel::source_ids(const SourceTokens& tokens) const {
  std::vector<int64_t> ids = source_vocabulary.encode(tokens.names);
  if (!ids.empty()) check_language(tokens.names[0], ids[0]);
  mark_second_text(ids, tokens.second);
  return ids;
}

void PairModel::check_language(const std::string& token, int64_t id) const {
  if (text.language_token && id == Vocabulary::unknown)
    fail("language {} was not in training; there are {}", in_quotes(token),
         shown_tokens(source_vocabulary, is_language_token));
}

std::vector<EncodedPair> PairModel::encode(const TokenisedExamples& tokenised, int64_t* cut) const {
  const std::vector<int64_t> sources = source_vocabulary.encode(tokenised.sources.tokens());
  const std::vector<int64_t> targets = target_vocabulary.encode(tokenised.targets.tokens());
  std::vector<EncodedPair> pairs;
  pairs.reserve(static_cast<size_t>(tokenised.targets.size()));
  const std::shared_ptr<FrameReader> reader = frame_reader();
  const AnswerKind& kind = answer_kind();
  for (size_t i = 0; i < tokenised.examples.size(); ++i) {
    const Example& example = tokenised.examples[i];
    EncodedPair pair;
    if (reader != nullptr) {
      pair.frames = reader->read(example.source);
      if (truncate_frames(pair.frames) && cut != nullptr) ++*cut;
    } else {
      const std::span<const int32_t> numbers = tokenised.sources[static_cast<int64_t>(i)];
      pair.source = looked_up(numbers, sources);
      if (!numbers.empty())
        check_language(tokenised.sources.tokens()[static_cast<size_t>(numbers[0])], pair.source[0]);
      kind.clean_source(pair.source);  // changes no pair of texts
      int64_t second = std::min(tokenised.seconds[i], std::ssize(pair.source));
      truncate_source(pair.source, second);
      mark_second_text(pair.source, second);
    }
    for (const std::string& target : example.targets) {
      const auto index = static_cast<int64_t>(pairs.size());
      pairs.push_back(pair);
      kind.encode_target(*this,
                         {example.source, target, looked_up(tokenised.targets[index], targets)},
                         pairs.back());
    }
  }
  return pairs;
}

std::vector<EncodedPair> PairModel::encode(const std::vector<Example>& examples) const {
  return encode(tokenise_examples(examples, codecs));
}

std::vector<int64_t> PairModel::encode_text(const std::string& source) const {
  std::vector<int64_t> ids;
  ids.reserve(source.size());
  codecs.target.for_each_line(source, [&](const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) ids.push_back(target_vocabulary.id(token));
  });
  return ids;
}

}  // namespace attend
