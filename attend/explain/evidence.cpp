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

bool above(const FigureValue& figure) { return figure.value > figure.other; }
bool below(const FigureValue& figure) { return figure.value < figure.other; }
bool any_value(const FigureValue&) { return true; }
bool at_least_5_hundredths(const FigureValue& figure) { return figure.value >= 0.05; }

Figure comprehensiveness(AnswerEvidence& evidence, const MethodRow&, const Tensor& scores) {
  return FigureValue{evidence.erase(scores).without, evidence.erase_in_random_order().without};
}

Figure sufficiency(AnswerEvidence& evidence, const MethodRow&, const Tensor& scores) {
  return FigureValue{evidence.erase(scores).with, evidence.erase_in_random_order().with};
}

Figure flips_by_token(AnswerEvidence& evidence, const MethodRow&, const Tensor& scores) {
  return FigureValue{evidence.flips_of_largest(scores), evidence.flips_of_any()};
}

// Tests of the weights say something of maps that are made of them.
const WeightTests* tests_for(AnswerEvidence& evidence, const MethodRow& method) {
  return method.reads_weights() ? evidence.weight_tests() : nullptr;
}

Figure flips_by_weight(AnswerEvidence& evidence, const MethodRow& method, const Tensor&) {
  const WeightTests* tests = tests_for(evidence, method);
  if (tests == nullptr) return {};
  return FigureValue{tests->flips_by_largest, tests->flips_by_random};
}

template <double WeightTests::*Member>
Figure of_weights(AnswerEvidence& evidence, const MethodRow& method, const Tensor&) {
  const WeightTests* tests = tests_for(evidence, method);
  if (tests == nullptr) return {};
  return FigureValue{tests->*Member};
}

Figure tau_gradient(AnswerEvidence& evidence, const MethodRow& method, const Tensor& scores) {
  if (method.scores == held_gradient) return {};
  return FigureValue{evidence.tau(scores, evidence.gradient())};
}

Figure tau_occlusion(AnswerEvidence& evidence, const MethodRow& method, const Tensor& scores) {
  if (method.scores == attend::occlusion) return {};
  return FigureValue{evidence.tau(scores, evidence.occlusion())};
}

Figure tau_random_weights(AnswerEvidence& evidence, const MethodRow& method, const Tensor& scores) {
  return FigureValue{evidence.tau(scores, evidence.untrained_scores(method))};
}

}  // namespace

const std::vector<FigureRow>& figure_table() {
  static const std::vector<FigureRow> table = {
      {"comprehensiveness",
       "probability lost without the 1, 5, 10, 20 and 50 % of tokens of the largest scores, mean",
       "DeYoung et al. 2020", "above that of a random order", true, above, comprehensiveness},
      {"sufficiency", "probability lost with those alone, mean", "DeYoung et al. 2020",
       "below that of a random order", true, below, sufficiency},
      {"flips_by_token", "share of answers that change without the token of the largest score",
       "Serrano & Smith 2019", "above that of a random token", true, above, flips_by_token},
      {"flips_by_weight", "share of answers that change when the largest weight is 0",
       "Serrano & Smith 2019", "above that of a random weight", true, above, flips_by_weight},
      {"permuted_weights",
       "median total variation of the answer under 100 permutations of the weights",
       "Jain & Wallace 2019", "at least 0.05", false, at_least_5_hundredths,
       of_weights<&WeightTests::permuted>},
      {"adversarial_weights",
       "largest Jensen-Shannon divergence, in nats, of weights that leave the answer as it is",
       "Jain & Wallace 2019", "at most 0.35", false,
       [](const FigureValue& figure) { return figure.value <= 0.35; },
       of_weights<&WeightTests::adversarial>},
      {"uniform_weights", "nats that the answer loses when all weights are equal",
       "Wiegreffe & Pinter 2019", "at least 0.05", false, at_least_5_hundredths,
       of_weights<&WeightTests::uniform_loss>},
      {"tau_gradient",
       "Kendall's rank correlation with the gradient by each token, weights held as they are",
       "Jain & Wallace 2019", "", false, any_value, tau_gradient},
      {"tau_occlusion", "the same with how far the answer moves without each token",
       "Jain & Wallace 2019", "", false, any_value, tau_occlusion},
      {"tau_random_weights", "the same with the map of an untrained network", "Adebayo et al. 2018",
       "at most 0.3 either way", false,
       [](const FigureValue& figure) { return std::abs(figure.value) <= 0.3; }, tau_random_weights},
  };
  return table;
}

const FigureRow& find_figure(const std::string& name) {
  return find_row(figure_table(), "figure", name);
}

EvidenceTester::EvidenceTester(const Subject& subject, const WeightTestOptions& options) {
  const at::NoGradGuard not_recorded;
  evidence_ = std::make_unique<AnswerEvidence>(subject, options);
}

EvidenceTester::~EvidenceTester() = default;

std::vector<MeasuredFigure> EvidenceTester::measure(const MethodRow& method, const Tensor& scores,
                                                    const std::vector<const FigureRow*>& rows) {
  const at::NoGradGuard not_recorded;
  std::vector<MeasuredFigure> figures;
  for (const FigureRow& row : figure_table()) {
    if (!rows.empty() && std::find(rows.begin(), rows.end(), &row) == rows.end()) continue;
    if (const Figure figure = row.measure(*evidence_, method, scores))
      figures.push_back({&row, *figure});
  }
  return figures;
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
    card.push_back(std::move(shown));
  }
  return card;
}

}  // namespace attend
