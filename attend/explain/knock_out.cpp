#include "attend/explain/knock_out.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/explain/ablated_network-inl.h"
#include "attend/explain/stopping-inl.h"
#include "attend/files/json_line.h"
#include "attend/inference/predictor.h"

namespace attend {
namespace {

constexpr std::string_view self_side = "self", source_side = "source", head_word = "head";
constexpr std::string_view query_word = "query", key_word = "key";

std::string part_key(const Site& site) {
  const std::string name = TracedAttention{{site.part, 0, false}, {}}.name();
  return name.empty() ? "attention" : name;
}

// Parses "3" or "1-4"; empty for other texts.
std::optional<NumberRange> number_range(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = parse_number<int64_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : parse_number<int64_t>(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last < *first) return std::nullopt;
  return NumberRange{*first, *last};
}

std::vector<std::string_view> split_at_dots(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t dot = 0; dot != std::string_view::npos;) {
    dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    if (dot != std::string_view::npos) text.remove_prefix(dot + 1);
  }
  return parts;
}

// Parsed name of heads or edges.
struct HeadSelector {
  std::string part;
  std::optional<NumberRange> layers = {}, heads = {}, queries = {}, keys = {};
  std::string side = {};  // empty: both

  bool holds(const AttentionHead& one) const {
    const std::string_view own = one.site.reads_source ? source_side : self_side;
    return part == part_key(one.site) && (!layers || layers->holds(one.site.layer)) &&
           (side.empty() || side == own) && (!heads || heads->holds(one.head + 1));
  }
};

// Empty if the text is not such a name.
std::optional<HeadSelector> head_selector(std::string_view name) {
  const std::vector<std::string_view> words = split_at_dots(name);
  HeadSelector selector{.part = std::string(words[0])};
  size_t next = 1;
  if (next < words.size() && (selector.layers = number_range(words[next]))) ++next;
  if (next < words.size() && (words[next] == self_side || words[next] == source_side))
    selector.side = words[next++];
  const std::pair<std::string_view, std::optional<NumberRange>*> numbered[] = {
      {head_word, &selector.heads}, {query_word, &selector.queries}, {key_word, &selector.keys}};
  for (const auto& [word, range] : numbered) {
    if (next + 1 >= words.size() || words[next] != word) continue;
    *range = number_range(words[next + 1]);
    next += 2;
    if (!*range) return std::nullopt;
  }
  return next == words.size() ? std::optional(selector) : std::nullopt;
}

// "encoder.1 with 2 heads, decoder.1.self with 2 heads".
std::string listed_heads(const std::vector<AttentionHead>& all) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + 1 < all.size() && all[i + 1].site == all[i].site) continue;
    text += fmt::format("{}{} with {} {}", text.empty() ? "" : ", ", attention_key(all[i].site),
                        all[i].head + 1, all[i].head == 0 ? "head" : "heads");
  }
  return text;
}

// Mean context [Dv] of a head over its queries.
at::Tensor mean_context(const TracedAttention& attention, int64_t head) {
  std::vector<at::Tensor> rows;
  int64_t first = 0;
  for (const AttentionCall& call : attention.calls) {
    const at::Tensor& context = call.result.context;
    const at::Tensor context_heads = context.dim() == 4 ? context : context.unsqueeze(1);
    if (first <= head && head < first + call.heads())
      rows.push_back(context_heads[0].select(0, head - first));
    if (!attention.in_steps()) first += call.heads();
  }
  return at::cat(rows).mean(0);
}

const TracedAttention& attention_of(const NetworkTrace& trace, const Site& site) {
  return *std::find_if(trace.attentions.begin(), trace.attentions.end(),
                       [&](const TracedAttention& one) { return one.site == site; });
}

std::vector<SwitchedOffHead> switched_off(const std::vector<AttentionHead>& heads,
                                          const NetworkTrace& trace, Ablation ablation) {
  std::vector<SwitchedOffHead> off;
  for (const AttentionHead& one : heads) {
    const TracedAttention& attention = attention_of(trace, one.site);
    if (!one.is_whole() && !attention.has_weights())
      fail("without: {} forms no weights, so it has no edges; switch whole heads off",
           attention.name());
    if (!one.is_whole() && ablation == Ablation::mean)
      fail("without: an edge has no mean; switch whole heads off, or take the ablation zero");
    off.push_back({one, {}});
    if (ablation == Ablation::mean) off.back().instead = mean_context(attention, one.head);
  }
  return off;
}

// Answer by log probabilities [1, T, V].
struct Computed {
  double value = 0;    // as KnockOut::before
  at::Tensor answers;  // int64 [T]: the most probable tokens
};

Computed computed(const Subject& subject, const at::Tensor& all) {
  Computed result;
  result.answers = considered(subject, all)[0].argmax(1).cpu();
  result.value = subject.model.answer_kind().in_unit(preferences(subject, all).sum().item<double>(),
                                                     subject.model.text);
  return result;
}

Computed computed_by(const Subject& subject, PairNetwork& network) {
  return computed(
      subject, trace_network(network, subject.batch, {.keeps = TraceParts::vectors}).distributions);
}

std::string best_answer(const PairModel& model, std::shared_ptr<PairNetwork> network,
                        const std::string& text, const SearchOptions& search) {
  PairModel other = model;
  other.network = std::move(network);
  const Model answering = Predictor::as_model(
      std::make_unique<Predictor>(std::move(other), ModelOptions{.threads = 1}));
  return answer_unless_stopped(answering, text, search).best().text;
}

// Whether the range contains a number from 1 to `count`.
bool is_within(const std::optional<NumberRange>& range, int64_t count) {
  return !range || range->first <= count;
}

// Returns named_heads() of a traced answer, without edges at positions that an attention lacks.
// Error on a name if no attention has its positions.
std::vector<AttentionHead> heads_there(const std::vector<std::string>& names,
                                       const NetworkTrace& trace) {
  const std::vector<AttentionHead> all = heads_of(trace);
  std::vector<AttentionHead> found;
  for (const std::string& name : names) {
    const size_t before = found.size();
    std::string sizes;
    for (const AttentionHead& one : named_heads({name}, all)) {
      const TracedAttention& attention = attention_of(trace, one.site);
      if (is_within(one.queries, attention.rows()) && is_within(one.keys, attention.columns()))
        found.push_back(one);
      else if (sizes.empty())
        sizes = fmt::format("{} has {} queries and {} keys", attention_key(one.site),
                            attention.rows(), attention.columns());
    }
    if (found.size() == before) fail("without {}: no such positions; {}", in_quotes(name), sizes);
  }
  return found;
}

std::string joined_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string attention_key(const Site& site) {
  std::string key = part_key(site);
  if (site.layer > 0) key += fmt::format(".{}", site.layer);
  if (site.part == NetworkPart::decoder)
    key += fmt::format(".{}", site.reads_source ? source_side : self_side);
  return key;
}

std::vector<AttentionHead> heads_of(const NetworkTrace& trace) {
  std::vector<AttentionHead> all;
  for (const TracedAttention& one : trace.attentions)
    for (int64_t head = 0; head < one.heads(); ++head) all.push_back({one.site, head});
  if (all.empty()) fail("nothing in the model attends, so it lacks heads to switch off");
  return all;
}

std::vector<AttentionHead> named_heads(const std::vector<std::string>& names,
                                       const std::vector<AttentionHead>& all, const char* option) {
  std::vector<AttentionHead> named;
  for (const std::string& name : names) {
    const std::optional<HeadSelector> selector = head_selector(name);
    const size_t before = named.size();
    for (const AttentionHead& one : all)
      if (selector && selector->holds(one))
        named.push_back({one.site, one.head, selector->queries, selector->keys});
    if (named.size() > before) continue;
    const Site& first = all.front().site;
    const auto heads = std::count_if(all.begin(), all.end(),
                                     [&](const AttentionHead& one) { return one.site == first; });
    fail("{} {}: the model has no such heads; it has {}; write {}.head.{}", option, in_quotes(name),
         listed_heads(all), attention_key(first), heads);
  }
  return named;
}

KnockOut knock_out(const Explanation& explanation, const std::string& text,
                   const SearchOptions& search, const std::vector<std::string>& names,
                   Ablation ablation) {
  const at::NoGradGuard not_recorded;
  const Subject& subject = explanation.subject();
  const NetworkTrace& trace = explanation.trace(TraceParts::attentions);
  const auto network = ablated_network(subject.model.network,
                                       switched_off(heads_there(names, trace), trace, ablation));
  const Computed before = computed(subject, trace.distributions);
  const Computed after = computed_by(subject, *network);
  return {.without = joined_names(names),
          .before = before.value,
          .after = after.value,
          .changed = (before.answers != after.answers).sum().item<int64_t>(),
          .places = subject.target_length(),
          .new_answer = best_answer(subject.model, network, text, search)};
}

void check_takes_no_map(const ShowOptions& options) {
  const std::pair<bool, const char*> others[] = {{options.view != ShowOptions{}.view, "view"},
                                                 {!options.method.empty(), "method"},
                                                 {options.choice.layer.has_value(), "layer"},
                                                 {options.choice.head.has_value(), "head"},
                                                 {options.words, "words"},
                                                 {!options.edge.empty(), "at"},
                                                 {options.evidence, "evidence"}};
  for (const auto& [is_set, name] : others)
    if (is_set)
      fail("without: reports how the answer changes, and shows no map; leave {} out", name);
}

std::string knock_out_json(const KnockOut& effect) {
  return json_line(nlohmann::ordered_json{{"without", effect.without},
                                          {"before", effect.before},
                                          {"after", effect.after},
                                          {"changed", effect.changed},
                                          {"places", effect.places},
                                          {"answer", effect.new_answer}});
}

std::vector<HeadEffect> head_effects(const Explanation& explanation, Ablation ablation,
                                     const Report& report) {
  const at::NoGradGuard not_recorded;
  const Subject& subject = explanation.subject();
  const NetworkTrace& trace = explanation.trace(TraceParts::attentions);
  const double before = computed(subject, trace.distributions).value;
  std::vector<HeadEffect> effects;
  const std::vector<AttentionHead> all = heads_of(trace);
  for (const AttentionHead& one : all) {
    if (report) report(std::ssize(effects), std::ssize(all));
    const auto network =
        ablated_network(subject.model.network, switched_off({one}, trace, ablation));
    effects.push_back({one, before - computed_by(subject, *network).value});
  }
  return effects;
}

}  // namespace attend
