#include <algorithm>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/metrics/chrf.h"
#include "attend/metrics/label_counts.h"
#include "attend/metrics/metric_rows-inl.h"
#include "attend/metrics/ngrams-inl.h"

namespace attend {
namespace {

using internal::best_reference;
using nlohmann::json;

int64_t whole(const MetricCounts& counts, const std::string& name) {
  return static_cast<int64_t>(internal::number_of(counts, name));
}

constexpr std::string_view references_key = "answers with references: ";

void count_references(const ScoredAnswer& answer, MetricCounts& counts) {
  counts[fmt::format("{}{}", references_key, answer.references.size())] = 1;
}

// Number of references per answer; 0 if it varies.
int64_t references_per_answer(const MetricCounts& counts) {
  const auto is_key = [](const auto& entry) { return entry.first.starts_with(references_key); };
  const auto first = std::find_if(counts.begin(), counts.end(), is_key);
  if (first == counts.end()) return 1;
  if (std::any_of(std::next(first), counts.end(), is_key)) return 0;
  return std::stoll(first->first.substr(references_key.size()));
}

MetricCounts count_for_bleu(const ScoredAnswer& answer, const MetricOptions& options) {
  const BleuCounts found = count_bleu(answer.text, answer.references, options.bleu);
  MetricCounts counts = {{"hypothesis_length", static_cast<double>(found.hypothesis_length)},
                         {"reference_length", static_cast<double>(found.reference_length)}};
  for (size_t n = 0; n < BleuCounts::orders; ++n) {
    counts[fmt::format("matches {}", n)] = static_cast<double>(found.matches[n]);
    counts[fmt::format("ngrams {}", n)] = static_cast<double>(found.ngrams[n]);
  }
  count_references(answer, counts);
  return counts;
}

BleuCounts bleu_counts(const MetricCounts& counts) {
  BleuCounts all;
  all.hypothesis_length = whole(counts, "hypothesis_length");
  all.reference_length = whole(counts, "reference_length");
  for (size_t n = 0; n < BleuCounts::orders; ++n) {
    all.matches[n] = whole(counts, fmt::format("matches {}", n));
    all.ngrams[n] = whole(counts, fmt::format("ngrams {}", n));
  }
  return all;
}

double bleu_figure(const MetricCounts& counts, const MetricOptions& options) {
  return bleu(bleu_counts(counts), options.bleu).score;
}

json bleu_details(const MetricCounts& counts, const MetricOptions& options) {
  const BleuCounts all = bleu_counts(counts);
  const BleuScore score = bleu(all, options.bleu);
  return {{"name", "BLEU"},
          {"score", score.score},
          {"signature", bleu_signature(options.bleu, references_per_answer(counts))},
          {"precisions", score.precisions},
          {"brevity_penalty", score.brevity_penalty},
          {"hypothesis_length", all.hypothesis_length},
          {"reference_length", all.reference_length}};
}

// In sacreBLEU's format.
std::string score_text(const json& details) {
  return fmt::format("{}|{} = {:.2f}\n", details["name"].get<std::string>(),
                     details["signature"].get<std::string>(), details["score"].get<double>());
}

std::string bleu_text(const json& details) {
  std::string text = score_text(details);
  text.pop_back();
  const auto hypothesis = details["hypothesis_length"].get<int64_t>();
  const auto reference = details["reference_length"].get<int64_t>();
  const double ratio =
      reference == 0 ? 0 : static_cast<double>(hypothesis) / static_cast<double>(reference);
  return text + fmt::format(" {:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})\n",
                            fmt::join(details["precisions"].get<std::vector<double>>(), "/"),
                            details["brevity_penalty"].get<double>(), ratio, hypothesis, reference);
}

// chrF; chrF++ if `word_order` is 2.
Metric chrf_row(const std::string& name, const std::string& title, int64_t word_order) {
  const auto read = [word_order](const MetricOptions& options) {
    return ChrfOptions{.word_order = word_order, .lowercase = options.bleu.lowercase};
  };
  const auto count = [read](const ScoredAnswer& answer, const MetricOptions& options) {
    const ChrfCounts found = count_chrf(answer.text, answer.references, read(options));
    MetricCounts counts;
    for (size_t n = 0; n < found.orders.size(); ++n) {
      counts[fmt::format("hypothesis {}", n)] = static_cast<double>(found.orders[n].hypothesis);
      counts[fmt::format("reference {}", n)] = static_cast<double>(found.orders[n].reference);
      counts[fmt::format("matches {}", n)] = static_cast<double>(found.orders[n].matches);
    }
    count_references(answer, counts);
    return counts;
  };
  const auto figure = [read](const MetricCounts& counts, const MetricOptions& options) {
    const ChrfOptions chosen = read(options);
    ChrfCounts all;
    for (int64_t n = 0; n < chosen.character_order + chosen.word_order; ++n)
      all.orders.push_back({whole(counts, fmt::format("hypothesis {}", n)),
                            whole(counts, fmt::format("reference {}", n)),
                            whole(counts, fmt::format("matches {}", n))});
    return chrf(all, chosen);
  };
  const auto details = [read, figure](const MetricCounts& counts, const MetricOptions& options) {
    return json{{"name", chrf_name(read(options))},
                {"score", figure(counts, options)},
                {"signature", chrf_signature(read(options), references_per_answer(counts))}};
  };
  return {.name = name,
          .key = name,
          .title = title,
          .higher_is_better = true,
          .count = count,
          .figure = figure,
          .details = details,
          .details_text = score_text};
}

// Does not occur in texts.
constexpr char between_labels = '\0';

void count_one_label(const std::string& answer, const std::vector<std::string>& right,
                     MetricCounts& counts) {
  LabelCounts one;
  one.add(answer, right);
  counts[one.answers.begin()->first + between_labels + answer] += 1;
}

// Labels of tokens against the best reference, by position. Tokens after the end of the answer
// (`unread`) count as unanswered.
void count_token_labels(const ScoredAnswer& answer, MetricCounts& counts) {
  const std::vector<std::string>& right = best_reference(answer);
  for (size_t i = 0; i < right.size(); ++i) {
    if (i < answer.tokens.size())
      count_one_label(answer.tokens[i], {right[i]}, counts);
    else
      counts[right[i] + between_labels + between_labels] += 1;
  }
}

MetricCounts count_label(const ScoredAnswer& answer, const MetricOptions& options) {
  internal::code_points_of(answer.text);
  for (const std::string& label : answer.references) internal::code_points_of(label);
  MetricCounts counts;
  if (options.label_per_token)
    count_token_labels(answer, counts);
  else
    count_one_label(answer.text, answer.references, counts);
  return counts;
}

LabelCounts label_counts(const MetricCounts& counts) {
  LabelCounts all;
  for (const auto& [labels, count] : counts) {
    const size_t end = labels.find(between_labels);
    const std::string right = labels.substr(0, end), answer = labels.substr(end + 1);
    const auto examples = static_cast<int64_t>(count);
    if (answer == std::string_view(&between_labels, 1))
      all.unanswered[right] += examples;
    else
      all.answers[right][answer] = examples;
  }
  return all;
}

json label_score(const LabelCounts::Score& score) {
  return {{"precision", score.precision}, {"recall", score.recall}, {"f1", score.f1}};
}

json label_details(const MetricCounts& counts, const MetricOptions&) {
  const LabelCounts all = label_counts(counts);
  json result = label_score(all.macro());
  result["micro_f1"] = all.accuracy();
  for (const auto& [label, score] : all.scores()) result["labels"][label] = label_score(score);
  return result;
}

std::string label_line(const std::string& name, const json& score) {
  return fmt::format("{}: F1 {:.2f} %, precision {:.2f} %, recall {:.2f} %\n", name,
                     100 * score["f1"].get<double>(), 100 * score["precision"].get<double>(),
                     100 * score["recall"].get<double>());
}

std::string label_text(const json& details) {
  std::string lines = label_line("mean of the labels", details);
  const json labels = details.value("labels", json::object());
  for (const auto& [label, score] : labels.items())
    lines += label_line(fmt::format("label {}", shown_label(label)), score);
  return lines;
}

}  // namespace

std::deque<Metric> internal::text_rows() {
  return {{.name = "bleu",
           .key = "bleu",
           .title = "BLEU",
           .higher_is_better = true,
           .by_length = ByLength::ranges,
           .count = count_for_bleu,
           .figure = bleu_figure,
           .details = bleu_details,
           .details_text = bleu_text},
          chrf_row("chrf", "chrF", 0),
          chrf_row("chrf++", "chrF++", 2),
          {.name = "f1",
           .key = "f1",
           .title = "F1",
           .higher_is_better = true,
           .is_share = true,
           .compares_labels = true,
           .count = count_label,
           .figure = [](const MetricCounts& counts,
                        const MetricOptions&) { return label_counts(counts).macro().f1; },
           .details = label_details,
           .details_text = label_text}};
}

}  // namespace attend
