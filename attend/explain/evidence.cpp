#include "attend/explain/evidence.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "attend/base/find_row.h"
#include "attend/explain/answer_evidence-inl.h"
#include "attend/explain/attention_methods-inl.h"

namespace attend {
namespace {

using at::Tensor;
using Figure = std::optional<FigureValue>;

constexpr const char* too_few_keys = "no token has two keys in scope";
constexpr const char* no_order = "the map has no order";

bool above(const FigureValue& figure) { return figure.value > figure.other; }
bool below(const FigureValue& figure) { return figure.value < figure.other; }
bool any_value(const FigureValue&) { return true; }
bool at_least_5_hundredths(const FigureValue& figure) { return figure.value >= 0.05; }

// Returns whether the scores of each row are equal up to rounding.
bool is_flat(const AnswerEvidence& evidence, const MappedScores& map) {
  bool flat = false;
  for (const int64_t row : evidence.rows()) {
    const Tensor own = map.scores[row].index({map.scope[row]}).to(at::kDouble);
    if (own.numel() < 2) continue;
    const double largest = own.abs().max().item<double>();
    if ((own.max() - own.min()).item<double>() > 1e-5 * largest) return false;
    flat = true;
  }
  return flat;
}

Figure erased(AnswerEvidence& evidence, const MappedScores& map,
              double AnswerEvidence::Erased::*member) {
  const auto best = evidence.erase(map.scores, map.scope);
  const auto random = evidence.erase_in_random_order(map.scope);
  if (!best || !random) return FigureValue{.missing = too_few_keys};
  return FigureValue{(*best).*member, (*random).*member};
}

Figure comprehensiveness(AnswerEvidence& evidence, const MappedScores& map) {
  return erased(evidence, map, &AnswerEvidence::Erased::without);
}

Figure sufficiency(AnswerEvidence& evidence, const MappedScores& map) {
  return erased(evidence, map, &AnswerEvidence::Erased::with);
}

Figure flips_by_token(AnswerEvidence& evidence, const MappedScores& map) {
  return evidence.flips_by_token(map.scores, map.scope);
}

// Figures of the weights apply only to maps that are made of weights.
Figure of_weights(AnswerEvidence& evidence, const MappedScores& map,
                  FigureValue (*figure)(const WeightTests& tests)) {
  const WeightTests* tests = map.method.reads_weights() ? evidence.weight_tests() : nullptr;
  if (tests == nullptr) return {};
  if (tests->tokens == 0) return FigureValue{.missing = too_few_keys};
  return figure(*tests);
}

Figure flips_by_weight(AnswerEvidence& evidence, const MappedScores& map) {
  return of_weights(evidence, map, [](const WeightTests& tests) {
    return FigureValue{tests.flips_by_largest, tests.flips_by_random};
  });
}

template <double WeightTests::*Member>
Figure weight_figure(AnswerEvidence& evidence, const MappedScores& map) {
  return of_weights(evidence, map,
                    [](const WeightTests& tests) { return FigureValue{tests.*Member}; });
}

Figure tau_gradient(AnswerEvidence& evidence, const MappedScores& map) {
  if (map.method.scores == held_gradient) return {};
  return evidence.tau_with_amounts(map, evidence.gradient());
}

Figure tau_occlusion(AnswerEvidence& evidence, const MappedScores& map) {
  if (map.method.scores == attend::occlusion) return {};
  return evidence.tau_with_amounts(map, evidence.occlusion());
}

Figure tau_random_weights(AnswerEvidence& evidence, const MappedScores& map) {
  return evidence.tau(map, evidence.untrained_scores(map.method, map.choice));
}

}  // namespace

const std::vector<FigureRow>& figure_table() {
  static const std::vector<FigureRow> table = {
      {"comprehensiveness",
       "mean loss of probability without the 1, 5, 10, 20 and 50 % of tokens with the largest "
       "scores",
       "DeYoung et al. 2020", "above a random order", true, above, comprehensiveness, nullptr,
       true},
      {"sufficiency", "mean loss of probability with only these tokens", "DeYoung et al. 2020",
       "below a random order", true, below, sufficiency, nullptr, true},
      {"flips_by_token", "share of answers that change without the token with the largest score",
       "Serrano & Smith 2019", "above a random token", true, above, flips_by_token,
       "no token changes the answer", true},
      {"flips_by_weight", "share of answers that change when the largest weight is 0",
       "Serrano & Smith 2019", "above a random weight", true, above, flips_by_weight,
       "no removed weight changes the answer"},
      {"permuted_weights",
       "median total variation of the answer under 100 permutations of the weights",
       "Jain & Wallace 2019", "at least 0.05", false, at_least_5_hundredths,
       weight_figure<&WeightTests::permuted>},
      {"adversarial_weights",
       "largest Jensen-Shannon divergence, in nats, of weights that do not change the answer",
       "Jain & Wallace 2019", "at most 0.35", false,
       [](const FigureValue& figure) { return figure.value <= 0.35; },
       weight_figure<&WeightTests::adversarial>},
      {"uniform_weights", "loss of log probability, in nats, with equal weights",
       "Wiegreffe & Pinter 2019", "at least 0.05", false, at_least_5_hundredths,
       weight_figure<&WeightTests::uniform_loss>},
      {"tau_gradient",
       "Kendall's rank correlation with the gradient by each token, with constant weights",
       "Jain & Wallace 2019", "", false, any_value, tau_gradient, nullptr, true},
      {"tau_occlusion",
       "Kendall's rank correlation with the change of the answer without each token",
       "Jain & Wallace 2019", "", false, any_value, tau_occlusion, nullptr, true},
      {"tau_random_weights", "Kendall's rank correlation with the map of an untrained network",
       "Adebayo et al. 2018", "from -0.3 to 0.3", false,
       [](const FigureValue& figure) { return std::abs(figure.value) <= 0.3; }, tau_random_weights,
       nullptr, true},
  };
  return table;
}

const FigureRow& find_figure(const std::string& name) {
  return find_row(figure_table(), "figure", name);
}

EvidenceTester::EvidenceTester(const Explanation& explanation, const WeightTestOptions& options) {
  const at::NoGradGuard not_recorded;
  evidence_ = std::make_unique<AnswerEvidence>(explanation, options);
}

EvidenceTester::~EvidenceTester() = default;

MethodChoice EvidenceTester::choice() const { return {.tokens = evidence_->rows()}; }

std::vector<MeasuredFigure> EvidenceTester::measure(const MethodRow& method, const Tensor& scores,
                                                    const std::vector<const FigureRow*>& rows,
                                                    const MethodChoice& choice) {
  const at::NoGradGuard not_recorded;
  const Tensor scope = evidence_->scope(method, choice);
  const MappedScores map{method, choice, scores, scope};
  const bool flat = is_flat(*evidence_, map);
  std::vector<MeasuredFigure> figures;
  for (const FigureRow& row : figure_table()) {
    if (!rows.empty() && std::find(rows.begin(), rows.end(), &row) == rows.end()) continue;
    Figure figure = row.measure(*evidence_, map);
    if (!figure) continue;
    if (flat && row.needs_order && figure->missing == nullptr) figure = {.missing = no_order};
    figures.push_back({&row, *figure});
  }
  return figures;
}

const char* why_missing(const FigureRow& row, const FigureValue& figure) {
  if (figure.missing != nullptr) return figure.missing;
  return figure.value == 0 && figure.other == 0 ? row.both_zero : nullptr;
}

std::string bar_text(const FigureRow& row, double baseline) {
  return row.compares ? fmt::format("{}, {:.3f}", row.bar, baseline) : row.bar;
}

std::vector<EvidenceFigure> evidence_card(const std::vector<MeasuredFigure>& figures) {
  std::vector<EvidenceFigure> card;
  for (const auto& [row, figure] : figures) {
    EvidenceFigure shown;
    shown.name = row->name;
    shown.meaning = fmt::format("{} ({}).", row->meaning, row->paper);
    shown.value = figure.value;
    shown.bar = bar_text(*row, figure.other);
    shown.passed = row->passes(figure);
    if (const char* missing = why_missing(*row, figure)) {
      shown.missing = missing;
      shown.bar = row->bar;
      shown.passed = true;
    }
    card.push_back(std::move(shown));
  }
  return card;
}

}  // namespace attend
