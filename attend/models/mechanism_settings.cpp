#include "attend/models/mechanism_settings.h"

#include "attend/base/error.h"
#include "attend/nn/mechanism_table.h"
#include "attend/ops/biases.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scopes.h"
#include "attend/ops/scores.h"

namespace attend {
namespace {

// Adds an empty choice, which selects the mechanism's own score.
std::vector<std::string> score_names(std::vector<std::string> names) {
  names.reserve(names.size() + score_table().size() + 1);
  for (const ScoreRow& row : score_table()) names.emplace_back(row.name);
  names.emplace_back();
  return names;
}

std::vector<std::string> mechanism_names() {
  std::vector<std::string> names;
  names.reserve(mechanism_table().size());
  for (const Mechanism& row : mechanism_table()) names.emplace_back(row.name);
  return names;
}

}  // namespace

AttentionChoices MechanismSettings::choices() const {
  AttentionChoices choices = attend::mechanism(mechanism).choices;
  if (!score.empty()) choices.score = score;
  if (!scope.empty()) choices.scope = scope;
  if (!normaliser.empty()) choices.normaliser = normaliser;
  if (bias == automatic_bias) {
    const bool supports_bias = !Normaliser(choices.normaliser).row().running_sums;
    if (choices.bias.empty() && supports_bias) choices.bias = "buckets:32";
  } else if (!bias.empty()) {
    choices.bias = bias == no_bias ? "" : bias;
  }
  return choices;
}

void MechanismSettings::check(const std::string& prefix) const {
  const AttentionChoices choices = this->choices();
  check_choices(choices);
  if (Normaliser(choices.normaliser).row().training == Training::gradient) return;
  std::vector<std::string_view> trained;
  for (const NormaliserRow& row : normaliser_table())
    if (row.training == Training::gradient) trained.push_back(row.syntax);
  fail(
      "{}normaliser is {}, which gives the scores no gradient, so queries and keys would not be "
      "trained; take {}",
      prefix, choices.normaliser, fmt::join(trained, ", "));
}

std::string MechanismSettings::not_shared_reason(const std::string& prefix) const {
  for (const BiasChoice& choice : parse_biases(choices().bias))
    if (choice.row->is_of_source)
      return fmt::format("{}bias is {}, and its gates are summed over positions of all processes",
                         prefix, choice.row->name);
  if (has_bias(parse_biases(choices().bias), BiasKind::cope))
    return fmt::format("{}bias is {}, which counts keys of all processes", prefix, choices().bias);
  const std::string scope = choices().scope;
  if (around_reach(scope))
    return fmt::format("{}scope is {}, which predicts centres from queries of all processes",
                       prefix, scope);
  if (depends_on_data(parse_scope(scope)))
    return fmt::format("{}scope is {}, which chooses among the keys of all processes", prefix,
                       scope);
  return "";
}

Settings MechanismSettings::settings(const std::string& prefix, const std::string& which,
                                     const std::vector<std::string>& scores) {
  return {
      {prefix + "mechanism",
       &mechanism,
       which + ": a mechanism of attend mechanisms",
       {},
       {},
       mechanism_names()},
      {prefix + "score",
       &score,
       scores.empty()
           ? "score of the attention; empty: the mechanism's own"
           : "score of the attention; empty: the mechanism's own; none: one fixed context",
       {},
       {},
       score_names(scores)},
      {prefix + "scope", &scope,
       "scope: keys that a query may attend to, such as window:5; empty: the mechanism's own"},
      {prefix + "bias", &bias,
       "bias of the scores, such as alibi + sink; none: no bias; empty: the mechanism's own; auto: "
       "the same, or buckets:32 if it lacks one"},
      {prefix + "normaliser", &normaliser,
       "normaliser of the scores, such as sparsemax; empty: the mechanism's own"},
  };
}

}  // namespace attend
