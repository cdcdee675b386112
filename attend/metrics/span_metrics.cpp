#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "attend/base/error.h"
#include "attend/metrics/metric_rows-inl.h"

namespace attend {
namespace {

using internal::number_of;
using nlohmann::json;

// Type, and indices of the first and last label.
using Span = std::tuple<std::string_view, size_t, size_t>;

// A label: O, or B, I, E or S with a type, which may be empty. BILOU's L and U are E and S.
struct SpanLabel {
  char place = 'O';
  std::string_view type;

  bool begins() const { return place == 'B' || place == 'S'; }
  bool ends() const { return place == 'E' || place == 'S' || place == 'O'; }
};

// Accepts BIO, BIOES and BILOU; L and U of BILOU become E and S.
SpanLabel parse_label(std::string_view label) {
  if (label == "O") return {};
  constexpr std::string_view places = "BIESLU", read_as = "BIESES";
  const size_t place = label.empty() ? places.npos : places.find(label[0]);
  if (place != places.npos && (label.size() == 1 || label[1] == '-'))
    return {read_as[place], label.substr(std::min<size_t>(label.size(), 2))};
  fail("{} is not a label of spans; write O, or B, I, E, S, L or U with -TYPE (BIO, BIOES, BILOU)",
       in_quotes(label));
}

// As in conlleval, I and E begin a span if no span of their type is open.
std::set<Span> spans_of(const std::vector<std::string>& labels) {
  std::set<Span> spans;
  SpanLabel last;
  size_t first = 0;
  const auto close = [&](size_t end) {
    if (last.place != 'O') spans.emplace(last.type, first, end - 1);
  };
  for (size_t i = 0; i < labels.size(); ++i) {
    const SpanLabel label = parse_label(labels[i]);
    const bool is_new =
        label.begins() || label.place == 'O' || last.ends() || label.type != last.type;
    if (is_new) {
      close(i);
      first = i;
    }
    last = label;
  }
  close(labels.size());
  return spans;
}

MetricCounts count_spans(const ScoredAnswer& answer, const MetricOptions&) {
  if (answer.reference_tokens.size() != 1)
    fail("{} references; give one per answer", answer.reference_tokens.size());
  const auto& reference = answer.reference_tokens[0];
  if (std::ssize(answer.tokens) + answer.unread != std::ssize(reference))
    fail("{} labels, and the reference has {}; give one label per token", answer.tokens.size(),
         reference.size());
  const std::set<Span> answered = spans_of(answer.tokens), wanted = spans_of(reference);
  const auto right = std::count_if(answered.begin(), answered.end(),
                                   [&](const Span& span) { return wanted.contains(span); });
  return {{"right", static_cast<double>(right)},
          {"answered", static_cast<double>(answered.size())},
          {"wanted", static_cast<double>(wanted.size())}};
}

double share_of_spans(double part, double all) { return all == 0 ? 0 : part / all; }

// 2 P R / (P + R) with P = right / answered and R = right / wanted.
double span_f1(const MetricCounts& counts, const MetricOptions&) {
  return share_of_spans(2 * number_of(counts, "right"),
                        number_of(counts, "answered") + number_of(counts, "wanted"));
}

json span_details(const MetricCounts& counts, const MetricOptions& options) {
  const double right = number_of(counts, "right");
  return {{"precision", share_of_spans(right, number_of(counts, "answered"))},
          {"recall", share_of_spans(right, number_of(counts, "wanted"))},
          {"f1", span_f1(counts, options)}};
}

std::string span_text(const json& details) {
  return fmt::format("spans: F1 {:.2f} %, precision {:.2f} %, recall {:.2f} %\n",
                     100 * details["f1"].get<double>(), 100 * details["precision"].get<double>(),
                     100 * details["recall"].get<double>());
}

}  // namespace

std::deque<Metric> internal::span_rows() {
  return {{.name = "span_f1",
           .key = "span_f1",
           .title = "F1 of spans",
           .needs = MetricNeeds::tokens,
           .higher_is_better = true,
           .is_share = true,
           .count = count_spans,
           .figure = span_f1,
           .details = span_details,
           .details_text = span_text}};
}

}  // namespace attend
