#include "attend/nn/attention_choices.h"

#include <algorithm>
#include <vector>

#include "attend/base/error.h"
#include "attend/ops/biases.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scopes.h"
#include "attend/ops/scores.h"

namespace attend {
namespace {

// The numbers in a trained bias's text give the size of its table.
void check_trained(const BiasChoice& bias) {
  const BiasRow& row = *bias.row;
  if (!row.is_trained) {
    std::vector<std::string_view> trained;
    for (const BiasRow& other : bias_table())
      if (other.is_trained) trained.push_back(other.syntax);
    fail("bias {} is a given tensor and not trained; take {}", row.name, fmt::join(trained, ", "));
  }
  const bool large_enough =
      std::all_of(bias.numbers.begin(), bias.numbers.end(),
                  [&](int64_t number) { return number >= row.numbers.least; });
  if (bias.numbers.size() < row.numbers.count || !large_enough)
    fail("bias {}: write {}, numbers of {} to {}", row.name, row.syntax, row.numbers.least,
         largest_bias_number);
}

void check_biases(const AttentionChoices& choices, bool predicts_centre) {
  const std::vector<BiasChoice> biases = parse_biases(choices.bias);
  for (const BiasChoice& bias : biases) check_trained(bias);
  const NormaliserRow& normaliser = Normaliser(choices.normaliser).row();
  const bool is_centred = has_bias(biases, BiasKind::gaussian);
  if (is_centred && !predicts_centre)
    fail("bias gaussian needs a predicted centre, and scope {} predicts none; take scope around:D",
         choices.scope);
  if (predicts_centre && !is_centred)
    fail("scope {} predicts a centre that only bias gaussian trains; add it", choices.scope);
  if (has_bias(biases, BiasKind::offset) && normaliser.shift_invariant)
    fail(
        "bias offset adds one number to all scores of a row, which normaliser {} cancels; leave it "
        "out, or take sigmoid, none or monotonic",
        choices.normaliser);
  if (has_bias(biases, BiasKind::cope) && score_row(choices.score).family != Family::dot)
    fail(
        "bias cope counts products of queries and keys, and the score is {}; take scaled_dot, dot, "
        "general or cosine",
        choices.score);
  if (has_bias(biases, BiasKind::sink) && !normaliser.takes_sink)
    fail("bias sink takes part in a softmax, and the normaliser is {}; take softmax",
         normaliser.name);
}

}  // namespace

void check_choices(const AttentionChoices& choices) {
  const ScoreRow& score = score_row(choices.score);
  const bool predicts_centre = around_reach(choices.scope).has_value();
  if (!predicts_centre) parse_scope(choices.scope);
  const bool divides_by_sum = Normaliser(choices.normaliser).row().running_sums;
  const bool has_biases = !parse_biases(choices.bias).empty();
  if (divides_by_sum && (score.features == Features::any || has_biases))
    fail(
        "normaliser {} divides by the sum of the scores, which score {} with bias {} may make "
        "negative; take elu_features or positive_features without a bias, or softmax",
        choices.normaliser, choices.score, in_quotes(choices.bias));
  check_biases(choices, predicts_centre);
}

bool is_plain_softmax(const AttentionChoices& choices) {
  const NormaliserRow& row = Normaliser(choices.normaliser).row();
  return row.kernel == kernels::Normaliser::softmax && row.temperature == Temperature::none &&
         row.draws == Draws::nothing && row.in_evaluation.empty() && row.factor == nullptr;
}

}  // namespace attend
