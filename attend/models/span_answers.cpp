#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/trimmed.h"
#include "attend/base/utf8.h"
#include "attend/data/batches.h"
#include "attend/data/span_target.h"
#include "attend/metrics/metric.h"
#include "attend/models/answer_kind.h"
#include "attend/models/pair_model.h"

namespace attend {
namespace {

// Tokens of an answer if the options name no maximum, as in SQuAD's baselines.
constexpr int64_t usual_length = 15;

// Tokens [begin, end) of a source.
struct TokenRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

// The passage, without special tokens after it.
TokenRange passage_of(const PairModel& model, const std::vector<int64_t>& source) {
  const auto is_first = [&](int64_t id) { return id < model.source_vocabulary.size(); };
  const int64_t closing = model.codecs.source.margins(/*is_pair=*/true).after;
  return {std::count_if(source.begin(), source.end(), is_first), std::ssize(source) - closing};
}

// Parts of the passage that fit into one source with the question, in order.
std::vector<TokenRange> windows_of(const PairModel& model, const std::vector<int64_t>& source) {
  const TokenRange passage = passage_of(model, source);
  const int64_t others = std::ssize(source) - passage.size();
  const int64_t room = model.maximum_source_length() - others;
  if (passage.size() <= room) return {passage};
  const int64_t step = room - std::min(model.config.chosen().overlap(), room / 2);
  std::vector<TokenRange> windows;
  for (int64_t begin = passage.begin;; begin += step) {
    windows.push_back({begin, std::min(begin + room, passage.end)});
    if (windows.back().end == passage.end) return windows;
  }
}

// The source with only a part of its passage.
std::vector<int64_t> source_with(const std::vector<int64_t>& source, const TokenRange& passage,
                                 const TokenRange& window) {
  std::vector<int64_t> ids(source.begin(), source.begin() + passage.begin);
  ids.insert(ids.end(), source.begin() + window.begin, source.begin() + window.end);
  ids.insert(ids.end(), source.begin() + passage.end, source.end());
  return ids;
}

// Places of own units, which are parts of the text in its order.
std::vector<TokenSpan> unit_places(const SourceTokens& tokens, std::string_view text) {
  std::vector<TokenSpan> places;
  size_t cursor = 0;
  for (const std::string& token : tokens.names) {
    const size_t begin = text.find(token, cursor);
    TokenSpan& place = places.emplace_back();
    if (begin == std::string_view::npos) continue;
    cursor = begin + token.size();
    if (token != pair_separator) place = {begin, cursor};
  }
  return places;
}

// The tokens of a source that the model reads, with their places in the text.
struct PlacedTokens {
  SourceTokens tokens;
  std::vector<TokenSpan> places;  // empty ranges for tokens without text
  std::string_view passage;
  size_t passage_begin = 0;  // in the text

  PlacedTokens(const PairModel& model, const std::string& text)
      : tokens(model.codecs.source.split_source(text)),
        places(model.codecs.source.tokenizer ? model.codecs.source.places(text)
                                             : unit_places(tokens, text)),
        passage(source_texts(text, PairTexts::always).second.value()),
        passage_begin(static_cast<size_t>(passage.data() - text.data())) {
    int64_t second = tokens.second;
    model.truncate_source(places, second);
    model.truncate_source(tokens.names, tokens.second);
  }

  // Whether a token of the passage has other text than spaces.
  bool has_text(int64_t token) const {
    const TokenSpan& place = places[static_cast<size_t>(token)];
    if (place.begin >= place.end) return false;
    return !trimmed(passage.substr(place.begin - passage_begin, place.end - place.begin)).empty();
  }

  // Bytes of the passage that the tokens come from.
  TextSpan text_of(const TokenRange& range) const {
    return {places[static_cast<size_t>(range.begin)].begin - passage_begin,
            places[static_cast<size_t>(range.end - 1)].end - passage_begin};
  }

  // Tokens of `passage_tokens` that have a part of the text; empty if there are none.
  TokenRange covering(const TextSpan& text, const TokenRange& passage_tokens) const {
    TokenRange found{passage_tokens.end, passage_tokens.begin};
    for (int64_t i = passage_tokens.begin; i < passage_tokens.end; ++i) {
      if (!has_text(i)) continue;
      const auto [begin, end] = text_of({i, i + 1});
      if (begin >= text.end || end <= text.begin) continue;
      found = {std::min(found.begin, i), std::max(found.end, i + 1)};
    }
    return found;
  }
};

// The window around the tokens with most context on both sides; null if none holds all of them.
const TokenRange* window_around(const std::vector<TokenRange>& windows, const TokenRange& tokens) {
  const TokenRange* best = nullptr;
  int64_t most = -1;
  for (const TokenRange& window : windows) {
    const int64_t context = std::min(tokens.begin - window.begin, window.end - tokens.end);
    if (context <= most) continue;
    most = context;
    best = &window;
  }
  return best;
}

// A possible answer: tokens of the whole source, with the log probabilities of its ends.
struct FoundSpan {
  TokenRange tokens;
  double first = 0, last = 0;

  double log_probability() const { return first + last; }
  bool operator<(const FoundSpan& other) const {
    if (log_probability() != other.log_probability())
      return log_probability() > other.log_probability();
    return std::pair(tokens.begin, tokens.end) < std::pair(other.tokens.begin, other.tokens.end);
  }
};

void keep_best(std::vector<FoundSpan>& spans, size_t count) {
  std::sort(spans.begin(), spans.end());
  if (spans.size() > count) spans.resize(count);
}

// Adds the best answers in one window. `step`: log probabilities of first, then of last tokens.
void add_spans(const PlacedTokens& placed, const TokenRange& passage, const TokenRange& window,
               std::span<const double> step, const SearchOptions& options,
               std::vector<FoundSpan>& all) {
  const std::span<const double> firsts = step.first(step.size() / 2);
  const std::span<const double> lasts = step.last(step.size() / 2);
  // Index of a token of the source in the step.
  const auto here = [&](int64_t token) {
    return static_cast<size_t>(passage.begin + token - window.begin);
  };
  const int64_t longest = options.maximum_length > 0 ? options.maximum_length : usual_length;
  std::vector<FoundSpan> found;
  for (int64_t first = window.begin; first < window.end; ++first) {
    if (!placed.has_text(first)) continue;
    for (int64_t last = first; last < std::min(first + longest, window.end); ++last)
      if (placed.has_text(last))
        found.push_back({{first, last + 1}, firsts[here(first)], lasts[here(last)]});
    // Long passages have many spans.
    if (found.size() > 2 * static_cast<size_t>(options.nbest) + 4096)
      keep_best(found, static_cast<size_t>(options.nbest));
  }
  const auto count = static_cast<size_t>(options.nbest);
  keep_best(found, count);
  for (const FoundSpan& span : found) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const FoundSpan& other) {
      return other.tokens.begin == span.tokens.begin && other.tokens.end == span.tokens.end;
    });
    if (same == all.end())
      all.push_back(span);
    else if (span < *same)
      *same = span;
  }
  keep_best(all, count);
}

StepAnswer answer_of(const FoundSpan& span, const PlacedTokens& placed) {
  const auto name = [&](int64_t token) { return placed.tokens.names[static_cast<size_t>(token)]; };
  const int64_t last = std::max(span.tokens.begin, span.tokens.end - 1);
  StepAnswer answer{.ids = {span.tokens.begin, last},
                    .tokens = {name(span.tokens.begin), name(last)},
                    .log_probabilities = {span.first, span.last}};
  answer.span = CharacterSpan();
  answer.text = "";
  if (span.tokens.size() == 0) return answer;
  const auto [begin, end] = placed.text_of(span.tokens);
  answer.text = std::string(placed.passage.substr(begin, end - begin));
  const auto before = static_cast<int64_t>(character_count(placed.passage.substr(0, begin)));
  answer.span = {before, before + static_cast<int64_t>(character_count(*answer.text))};
  return answer;
}

class Span final : public AnswerKind {
 public:
  std::string_view name() const override { return "span"; }
  const AnswerKind* for_targets(TargetKind target) const override {
    return target == TargetKind::span ? this : nullptr;
  }
  int64_t length(int64_t) const override { return 2; }
  bool is_span() const override { return true; }
  bool shares_probability() const override { return false; }
  bool is_searched() const override { return false; }

  void check_text(const TextConfig& text, const std::string& type) const override {
    if (text.pairs != PairTexts::always)
      fail(
          "model.type is {}, which answers with a part of the second text; set data.pairs = always",
          type);
    if (text.joint_vocabulary || text.target_units != name_of(Units::line))
      fail(
          "data.target is span, a part of the source; leave data.joint_vocabulary and "
          "data.target_units out");
    if (text.source_units == tokenizer_units) return;
    const bool is_unit = text.source_units == name_of(Units::character) ||
                         text.source_units == name_of(Units::space);
    if (!is_unit || text.lowercase || text.tokenise || text.normalise != NormalForm::none)
      fail(
          "data.target is span, and tokens must be parts of the text as it is; set "
          "data.source_units to tokenizer, space or char, data.normalise = none, and leave "
          "data.lowercase and data.tokenise out");
  }
  void check_stored(const TextConfig& text, const std::string& type,
                    const std::string&) const override {
    check_text(text, type);
  }
  Vocabulary target_vocabulary(const WordCounts&, const TextCodec&, const TextConfig&,
                               const Vocabulary&) const override {
    return {};
  }
  void encode_target(const PairModel& model, GivenTarget given, EncodedPair& pair) const override;
  int64_t longest_target(const NetworkConfig&) const override { return no_limit; }
  std::string described_targets(const PairModel&) const override {
    return " tokens, targets are parts of the passages";
  }

  std::vector<EncodedPair> parts(const PairModel& model, const EncodedPair& source) const override;
  std::vector<StepAnswer> read_steps(const PairModel& model,
                                     const AskedSource& asked) const override;
  // All spans are ranked.
  void fit(SearchOptions& options) const override {
    options.beam = std::max(options.beam, options.nbest);
  }
  void normalise(const TextCodec&, std::string& reference,
                 std::vector<std::string>& tokens) const override {
    reference = std::string(span_text(reference));
    tokens = {reference};
  }

  std::string metric() const override { return "squad_f1"; }
  MeasuredFor measured() const override { return MeasuredFor::spans; }
  bool counts_unknown() const override { return false; }
  int64_t loss_terms(const std::vector<EncodedPair>& pairs) const override {
    return 2 * std::ssize(pairs);
  }
};

void Span::encode_target(const PairModel& model, GivenTarget given, EncodedPair& pair) const {
  const PlacedTokens placed(model, given.source);
  const std::vector<TokenRange> windows = windows_of(model, pair.source);
  const TokenRange passage = passage_of(model, pair.source);
  const TokenRange* window = &windows.front();
  pair.target = {0, 0};
  pair.no_eos = true;
  if (const auto text = find_span(given.text, placed.passage)) {
    const TokenRange tokens = placed.covering(*text, passage);
    if (tokens.size() <= 0)
      fail("the answer {} has no tokens of its own; give another part of the passage",
           in_quotes(span_text(given.text)));
    // If no part holds the whole answer, the target is the empty answer.
    if (const TokenRange* around = window_around(windows, tokens)) {
      window = around;
      const int64_t shift = passage.begin - window->begin;
      pair.target = {tokens.begin + shift, tokens.end - 1 + shift};
    }
  }
  if (windows.size() > 1) pair.source = source_with(pair.source, passage, *window);
}

std::vector<EncodedPair> Span::parts(const PairModel& model, const EncodedPair& source) const {
  std::vector<EncodedPair> parts;
  const TokenRange passage = passage_of(model, source.source);
  for (const TokenRange& window : windows_of(model, source.source))
    parts.push_back({source_with(source.source, passage, window), {}});
  return parts;
}

std::vector<StepAnswer> Span::read_steps(const PairModel& model, const AskedSource& asked) const {
  const PlacedTokens placed(model, asked.text);
  const std::vector<int64_t> source = model.source_ids(placed.tokens);
  const TokenRange passage = passage_of(model, source);
  const std::vector<TokenRange> windows = windows_of(model, source);
  std::vector<FoundSpan> found;
  // The least probability of all parts: one part with an answer is enough.
  FoundSpan none{.tokens = {}, .first = std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < windows.size(); ++i) {
    const std::span<const double> step = asked.steps.at(i);
    if (std::any_of(step.begin(), step.end(), [](double value) { return std::isnan(value); }))
      return {};
    add_spans(placed, passage, windows[i], step, asked.options, found);
    const FoundSpan here{.tokens = {}, .first = step[0], .last = step[step.size() / 2]};
    if (none < here) none = here;
  }
  if (asked.options.no_answer || found.empty()) found.push_back(none);
  keep_best(found, static_cast<size_t>(asked.options.nbest));
  std::vector<StepAnswer> answers;
  answers.reserve(found.size());
  for (const FoundSpan& span : found) answers.push_back(answer_of(span, placed));
  return answers;
}

}  // namespace

const AnswerKind& span_answers() {
  static const Span kind;
  return kind;
}

}  // namespace attend
