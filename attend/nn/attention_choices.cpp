#include "attend/nn/attention_choices.h"

#include <algorithm>
#include <charconv>

#include "attend/base/error.h"
#include "attend/base/settings.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scopes.h"
#include "attend/ops/scores.h"

namespace attend {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// -1 where the text is no number of 0 or more.
int64_t number(std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = end == digits.data() + digits.size();
  return digits.empty() || error != std::errc() || !whole || value < 0 ? -1 : value;
}

// What stands behind the colon.
std::string_view arguments(std::string_view choice) {
  const size_t colon = choice.find(':');
  return colon == std::string_view::npos ? std::string_view() : choice.substr(colon + 1);
}

const BiasChoiceRow& bias_row(std::string_view part) {
  std::vector<std::string> names;
  std::vector<std::string_view> syntaxes;
  names.reserve(bias_choice_table().size());
  syntaxes.reserve(bias_choice_table().size());
  for (const BiasChoiceRow& row : bias_choice_table()) {
    if (row.name == base_name(part)) return row;
    names.emplace_back(row.name);
    syntaxes.push_back(row.syntax);
  }
  const std::string suggestion = nearest(base_name(part), names);
  if (!suggestion.empty()) fail("no bias is called {}; did you mean {}?", quoted(part), suggestion);
  fail("no bias is called {}; there are {}", quoted(part), fmt::join(syntaxes, ", "));
}

BiasChoice parse_bias(std::string_view part) {
  const BiasChoiceRow& row = bias_row(part);
  BiasChoice choice{std::string(row.name)};
  const std::string_view given = arguments(part);
  const size_t times = row.numbers == 2 ? given.find('x') : std::string_view::npos;
  if (row.numbers > 0) choice.size = number(given.substr(0, times));
  if (times != std::string_view::npos) choice.columns = number(given.substr(times + 1));
  constexpr int64_t most = 1 << 16;  // more is no table that anyone trains
  const auto fits = [&](int64_t value) { return value >= row.least && value <= most; };
  const bool good = row.numbers == 0
                        ? part == row.name
                        : fits(choice.size) && (row.numbers == 1 || fits(choice.columns));
  if (!good)
    fail("bias {}: write {}{}", quoted(part), row.syntax,
         row.numbers == 0 ? "" : fmt::format(", numbers of {} to {}", row.least, most));
  return choice;
}

bool has(const std::vector<BiasChoice>& biases, std::string_view name) {
  return std::any_of(biases.begin(), biases.end(),
                     [&](const BiasChoice& bias) { return bias.name == name; });
}

// Whether adding the same number to every score of a row changes its weights.
bool sees_offsets(std::string_view normaliser) {
  const std::string_view name = base_name(normaliser);
  return name == "sigmoid" || name == "none" || name.starts_with("monotonic");
}

}  // namespace

std::string_view base_name(std::string_view choice) { return choice.substr(0, choice.find(':')); }

std::optional<int64_t> around_reach(std::string_view scope) {
  const std::string_view text = trimmed(scope);
  if (!text.starts_with("around")) {
    if (text.find("around") != std::string_view::npos)
      fail("scope {}: around:D stands alone; write around:D and leave out the rest", quoted(scope));
    return std::nullopt;
  }
  const int64_t reach = base_name(text) == "around" ? number(arguments(text)) : -1;
  if (reach < 1) fail("scope {}: write around:D alone, D keys each way, 1 or more", quoted(scope));
  return reach;
}

const std::vector<BiasChoiceRow>& bias_choice_table() {
  static const std::vector<BiasChoiceRow> table = {
      {"alibi", "alibi", 0, 0, "a slope a head, at first those of Press et al. 2022"},
      {"buckets", "buckets:N", 1, 4,
       "a number a head and bucket of distances, N buckets, at first 0"},
      {"relative_keys", "relative_keys:L", 1, 1,
       "a vector a distance from -L to L, farther ones take the last"},
      {"grid", "grid:HxW", 2, 1,
       "a number a head, row distance and column distance on H rows of W, at first 0"},
      {"gaussian", "gaussian", 0, 0,
       "-(j - p)^2 / (2 s^2) around the centre p that scope around:D predicts, s = D / 2"},
      {"offset", "offset", 0, 0, "one number a head for every score, at first 0, for monotonic -1"},
      {"sink", "sink", 0, 0, "a score a head without a value in the softmax, at first 0"},
  };
  return table;
}

std::vector<BiasChoice> parse_biases(std::string_view text) {
  std::vector<BiasChoice> biases;
  if (trimmed(text).empty()) return biases;
  for (std::string_view rest = text;;) {
    const size_t plus = rest.find('+');
    const BiasChoice choice = parse_bias(trimmed(rest.substr(0, plus)));
    if (has(biases, choice.name))
      fail("bias {} names {} twice; leave one out", quoted(text), choice.name);
    biases.push_back(choice);
    if (plus == std::string_view::npos) return biases;
    rest = rest.substr(plus + 1);
  }
}

void check_choices(const AttentionChoices& choices) {
  score_row(choices.score);
  const bool predicts = around_reach(choices.scope).has_value();
  if (!predicts) parse_scope(choices.scope);
  const Normaliser normaliser(choices.normaliser);
  const std::vector<BiasChoice> biases = parse_biases(choices.bias);
  const std::string name(normaliser.row().name);
  if (normaliser.row().running_sums &&
      (score_row(choices.score).features == Features::any || !biases.empty()))
    fail(
        "normaliser {} divides by the sum of the scores, which score {} with bias {} may make "
        "negative; take elu_features or positive_features without a bias, or softmax",
        choices.normaliser, choices.score, quoted(choices.bias));
  if (has(biases, "gaussian") && !predicts)
    fail(
        "bias gaussian is centred where a query looks, and scope {} predicts no place; take scope "
        "around:D",
        choices.scope);
  if (predicts && !has(biases, "gaussian"))
    fail("scope {} predicts a centre that only bias gaussian trains; add it", choices.scope);
  if (has(biases, "offset") && !sees_offsets(choices.normaliser))
    fail(
        "bias offset adds one number to all scores of a row, which normaliser {} cancels; leave it "
        "out, or take sigmoid, none or monotonic",
        choices.normaliser);
  if (has(biases, "sink") && name != "softmax")
    fail("bias sink takes part in a softmax, and the normaliser is {}; take softmax", name);
}

}  // namespace attend
