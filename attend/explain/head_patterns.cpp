#include "attend/explain/head_patterns.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/explanation.h"
#include "attend/explain/layer_maps.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t max_repeated = 25;  // distinct tokens, each of them twice

Tensor previous_keys(const Tensor& tokens) {
  const Tensor places = at::arange(tokens.size(0));
  return places.unsqueeze(1) - 1 == places;
}

Tensor first_keys(const Tensor& tokens) {
  return (at::arange(tokens.size(0)) == 0).expand({tokens.size(0), -1});
}

// Other positions of the same token; a causal scope keeps only the earlier ones.
Tensor duplicate_keys(const Tensor& tokens) {
  return (tokens.unsqueeze(1) == tokens).fill_diagonal_(false);
}

// Positions after the other occurrences of the same token.
Tensor induction_keys(const Tensor& tokens) {
  Tensor keys = duplicate_keys(tokens).roll(1, 1);
  keys.select(1, 0).fill_(false);
  return keys;
}

// Numbers the names; equal names get equal numbers.
Tensor numbered(const std::vector<std::string>& names) {
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> tokens;
  tokens.reserve(names.size());
  for (const std::string& name : names)
    tokens.push_back(numbers.emplace(name, std::ssize(numbers)).first->second);
  return at::tensor(tokens, at::kLong);
}

// Returns random distinct tokens of a vocabulary, twice; empty if fewer than two are possible.
std::vector<int64_t> repeated_draws(int64_t vocabulary, int64_t maximum,
                                    const at::Generator& draws) {
  constexpr int64_t first = Vocabulary::unknown + 1;
  const int64_t count = std::min({max_repeated, maximum / 2, vocabulary - first});
  if (count < 2) return {};
  const Tensor drawn =
      at::randperm(vocabulary - first, draws, at::kLong).slice(0, 0, count) + first;
  const Tensor twice = at::cat({drawn, drawn});
  return {twice.data_ptr<int64_t>(), twice.data_ptr<int64_t>() + twice.numel()};
}

std::vector<std::string> names_of(const std::vector<int64_t>& tokens,
                                  const Vocabulary& vocabulary) {
  std::vector<std::string> names;
  names.reserve(tokens.size());
  for (const int64_t token : tokens) names.push_back(vocabulary.token(token));
  return names;
}

bool has_decoder(const NetworkTrace& trace) {
  return std::any_of(trace.attentions.begin(), trace.attentions.end(),
                     [](const auto& one) { return one.site.part == NetworkPart::decoder; });
}

// Whether the attention forms weights over its own sequence.
bool has_patterns(const TracedAttention& attention) {
  return attention.has_weights() && is_self_attention(attention.site);
}

}  // namespace

const std::vector<HeadPatternRow>& head_pattern_table() {
  static const std::vector<HeadPatternRow> table = {
      {"previous_token", "the token before", "Voita et al. 2019", previous_keys},
      {"first_token", "the first token, which takes unused weight", "Xiao et al. 2024", first_keys},
      {"duplicate_token", "the same token elsewhere", "Wang et al. 2023", duplicate_keys},
      {"induction", "the token after the same token elsewhere", "Olsson et al. 2022",
       induction_keys},
  };
  return table;
}

const HeadPatternRow* HeadPatterns::name() const {
  const auto largest = std::max_element(shares.begin(), shares.end());
  if (largest == shares.end() || *largest < named_share) return nullptr;
  return &head_pattern_table()[static_cast<size_t>(largest - shares.begin())];
}

Tensor pattern_shares(const Tensor& weights, const Tensor& scope, const Tensor& tokens) {
  const Tensor chosen = scope.logical_and(scope.sum(2, true) > 1);
  std::vector<Tensor> shares;
  for (const HeadPatternRow& row : head_pattern_table()) {
    const Tensor keys = chosen.logical_and(row.keys(tokens));
    const Tensor amounts = weights.abs() * chosen.logical_and(keys.any(2, true));
    const Tensor sums = amounts.sum({1, 2});
    shares.push_back((amounts * keys).sum({1, 2}) / sums.masked_fill(sums == 0, 1.0));
  }
  return at::stack(shares, 1);
}

Subject with_repeated_tokens(const Explanation& explanation) {
  const Subject& subject = explanation.subject();
  const PairModel& model = subject.model;
  if (subject.batch.source.is_floating_point() || model.graph != nullptr) return subject;
  const auto draws = at::make_generator<at::CPUGeneratorImpl>(1);
  EncodedPair pair;
  pair.source = repeated_draws(model.source_vocabulary.size(),
                               model.maximum_source_length() - subject.target_length(), draws);
  if (pair.source.empty()) return subject;
  const Tensor& target = subject.batch.target;
  pair.target = {target.data_ptr<int64_t>(), target.data_ptr<int64_t>() + target.numel()};
  pair.no_eos = true;
  if (model.answer_kind().is_tokenwise()) {
    // The model answers with one token per source token, whatever they are.
    pair.target.assign(pair.source.size(), Vocabulary::eos);
  } else if (model.answer_kind().is_span()) {
    pair.target = {0, 0};  // positions of the source, which has no second text
  } else if (has_decoder(explanation.trace(TraceParts::attentions))) {
    const std::vector<int64_t> answer = repeated_draws(
        model.target_vocabulary.size(), subject.network().maximum_answer_length(), draws);
    if (!answer.empty()) pair.target = answer;
  }
  Subject repeated = make_subject(model, pair);
  // Names, since different byte tokens may have the same text.
  repeated.source = names_of(pair.source, model.source_vocabulary);
  repeated.target = names_of(pair.target, model.target_vocabulary);
  return repeated;
}

HeadPatterns patterns_of(const std::vector<HeadPatterns>& all, const Site& site, int64_t head) {
  for (const HeadPatterns& one : all)
    if (one.site == site && one.head == head) return one;
  return {.site = site, .head = head};
}

std::string named_pattern(const HeadPatterns& head) {
  const HeadPatternRow* row = head.name();
  if (row == nullptr) return {};
  return fmt::format("{} {:.2f}", row->name,
                     *std::max_element(head.shares.begin(), head.shares.end()));
}

std::vector<HeadPatterns> head_patterns(const Explanation& explanation) {
  if (explanation.subject().model.graph != nullptr) return {};
  const at::NoGradGuard not_recorded;
  const auto& own = explanation.trace(TraceParts::attentions).attentions;
  if (std::none_of(own.begin(), own.end(), has_patterns)) return {};
  const Subject repeated = with_repeated_tokens(explanation);
  const NetworkTrace trace =
      trace_network(repeated.network(), repeated.batch, {.keeps = TraceParts::attentions});
  std::vector<HeadPatterns> found;
  for (const TracedAttention& one : trace.attentions) {
    if (!has_patterns(one)) continue;
    const LayerMap map = map_of(repeated, one);
    const Tensor shares =
        pattern_shares(float64_on_cpu(map.weights), traced_scope(one).cpu(), numbered(map.columns));
    for (int64_t head = 0; head < shares.size(0); ++head) {
      const Tensor row = shares[head].contiguous();
      found.push_back(
          {map.site, head, {row.data_ptr<double>(), row.data_ptr<double>() + row.numel()}});
    }
  }
  return found;
}

}  // namespace attend
