#include "attend/data/tokenised.h"

#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

template <class First>
void check_tokens(size_t count, const std::string& name, const First& first) {
  if (count == 0) fail("{}: holds no targets to learn from", name);
  if (count == 1)
    fail(
        "{}: every target is made of the one token {}; at least two are needed to learn from "
        "(are --target-units right?)",
        name, in_quotes(first()));
}

}  // namespace

void TokenisedTexts::add(const std::vector<std::string>& tokens) {
  for (const std::string& token : tokens) {
    const auto [found, is_new] = numbers_.try_emplace(token, static_cast<int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(token);
    all_.push_back(found->second);
  }
  ends_.push_back(all_.size());
}

std::span<const int32_t> TokenisedTexts::operator[](int64_t text) const {
  const auto index = static_cast<size_t>(text);
  const size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::span(all_).subspan(begin, ends_[index] - begin);
}

WordCounts TokenisedTexts::counts() const {
  std::vector<int64_t> by_number(tokens_.size());
  for (const int32_t number : all_) ++by_number[static_cast<size_t>(number)];
  WordCounts counts;
  for (size_t i = 0; i < tokens_.size(); ++i) counts[tokens_[i]] = by_number[i];
  return counts;
}

TokenisedExamples tokenise_examples(std::vector<Example> examples, const TextCodecs& codecs,
                                    int64_t longest_target) {
  TokenisedExamples result;
  result.examples.reserve(examples.size());
  for (Example& example : examples) {
    std::vector<std::string> kept;
    for (std::string& target : example.targets) {
      const std::vector<std::string> tokens = codecs.target.split(target);
      if (std::ssize(tokens) > longest_target) {
        ++result.left_out;
        continue;
      }
      result.targets.add(tokens);
      kept.push_back(std::move(target));
    }
    if (kept.empty()) continue;
    if (!codecs.source.names_file) {
      const SourceTokens tokens = codecs.source.split_source(example.source);
      result.sources.add(tokens.names);
      result.seconds.push_back(tokens.second);
    }
    result.examples.push_back({std::move(example.source), std::move(kept), example.line});
  }
  return result;
}

void check_targets(const TokenisedTexts& targets, const std::string& name) {
  check_tokens(targets.tokens().size(), name, [&] { return targets.tokens()[0]; });
}

void check_learnable(const WordCounts& targets, const TextConfig& text, const std::string& name) {
  // Passages differ even if answers are equal.
  if (text.wants_spans() || text.target == TargetKind::probability) return;
  if (text.wants_numbers())
    scale_of(targets);
  else
    check_tokens(targets.size(), name, [&] { return targets.begin()->first; });
}

}  // namespace attend
