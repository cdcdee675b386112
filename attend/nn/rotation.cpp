#include "attend/nn/rotation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/trimmed.h"

namespace attend {
namespace {

using at::Tensor;

// A rule in the syntax of parse_rotary_scaling().
struct RuleRow {
  std::string_view name;
  RotaryRule rule;
  size_t min_numbers, max_numbers;
};

constexpr RuleRow kRules[] = {
    {"none", RotaryRule::none, 0, 0},     {"float16", RotaryRule::float16, 0, 0},
    {"linear", RotaryRule::linear, 1, 1}, {"dynamic", RotaryRule::dynamic, 2, 2},
    {"yarn", RotaryRule::yarn, 2, 4},     {"llama3", RotaryRule::llama3, 2, 4}};

constexpr double largest_number = 0x1p40;

[[noreturn]] void refuse(std::string_view text) {
  fail(
      "rotary scaling {}: write none, float16, linear:FACTOR, dynamic:FACTOR,LENGTH, "
      "yarn:FACTOR,LENGTH[,FAST,SLOW] or llama3:FACTOR,LENGTH[,LOW,HIGH], such as yarn:4,2048; a "
      "FACTOR is 1 or more (linear: above 0), a LENGTH whole, FAST above SLOW, HIGH above LOW",
      in_quotes(text));
}

bool is_valid(const RotaryScaling& scaling) {
  if (!(scaling.factor > 0 && scaling.factor <= 1e6)) return false;
  if (scaling.rule == RotaryRule::none || scaling.rule == RotaryRule::float16 ||
      scaling.rule == RotaryRule::linear)
    return true;
  return scaling.factor >= 1 && scaling.length >= 1 && scaling.slow > 0 &&
         scaling.fast > scaling.slow && scaling.low > 0 && scaling.high > scaling.low &&
         scaling.fast <= largest_number && scaling.high <= largest_number;
}

std::vector<double> numbers_in(std::string_view list, std::string_view text) {
  std::vector<double> numbers;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string part(trimmed(list.substr(begin, end - begin)));
    double number = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || stop != part.data() + part.size() || !std::isfinite(number))
      refuse(text);
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

// The frequency index, from 0, that turns `turns` times within the length.
double index_of_turns(const Rotation& rotation, double columns, double turns) {
  return columns *
         std::log(static_cast<double>(rotation.scaling.length) / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rotation.base));
}

// Share of 1 / factor in each frequency: 0 up to one frequency, 1 from another one on.
Tensor yarn_ramp(const Rotation& rotation, double columns, int64_t count) {
  const RotaryScaling& scaling = rotation.scaling;
  const double low = std::max(std::floor(index_of_turns(rotation, columns, scaling.fast)), 0.0);
  double high = std::min(std::ceil(index_of_turns(rotation, columns, scaling.slow)), columns - 1);
  if (high == low) high += 0.001;
  return ((at::arange(count, at::kDouble) - low) / (high - low)).clamp(0, 1);
}

// Share of f, the rest is f / factor.
Tensor llama3_share(const RotaryScaling& scaling, const Tensor& frequencies) {
  const Tensor turns = frequencies * (static_cast<double>(scaling.length) / (2 * std::numbers::pi));
  return ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0, 1);
}

double grown_base(const Rotation& rotation, double columns, int64_t positions) {
  const RotaryScaling& scaling = rotation.scaling;
  const auto length = static_cast<double>(scaling.length);
  const double ratio = std::max(static_cast<double>(positions), length) / length;
  const double growth = scaling.factor * ratio - (scaling.factor - 1);
  // Two columns have one frequency, 1, whatever the base.
  return columns <= 2 ? rotation.base : rotation.base * std::pow(growth, columns / (columns - 2));
}

int64_t whole_columns(const Rotation& rotation, int64_t depth) {
  return static_cast<int64_t>(static_cast<double>(depth) * rotation.share);
}

}  // namespace

RotaryScaling parse_rotary_scaling(std::string_view text) {
  const std::string_view whole = trimmed(text);
  if (whole.empty()) return {};
  const size_t colon = whole.find(':');
  const std::string_view name = whole.substr(0, colon);
  const auto* row = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const RuleRow& one) { return one.name == name; });
  if (row == std::end(kRules)) refuse(text);
  RotaryScaling scaling{.rule = row->rule};
  const std::vector<double> numbers = colon == std::string_view::npos
                                          ? std::vector<double>()
                                          : numbers_in(whole.substr(colon + 1), text);
  if (numbers.size() < row->min_numbers || numbers.size() > row->max_numbers || numbers.size() == 3)
    refuse(text);
  if (!numbers.empty()) scaling.factor = numbers[0];
  if (numbers.size() > 1) {
    if (!(numbers[1] >= 1 && numbers[1] <= largest_number) || numbers[1] != std::floor(numbers[1]))
      refuse(text);
    scaling.length = static_cast<int64_t>(numbers[1]);
  }
  if (numbers.size() == 4) {
    const bool is_yarn = scaling.rule == RotaryRule::yarn;
    (is_yarn ? scaling.fast : scaling.low) = numbers[2];
    (is_yarn ? scaling.slow : scaling.high) = numbers[3];
  }
  if (!is_valid(scaling)) refuse(text);
  return scaling;
}

int64_t turned_columns(const Rotation& rotation, int64_t depth) {
  if (!(rotation.share > 0 && rotation.share <= 1))
    fail("[rotate] the share of turned columns is {}; it must be above 0 and at most 1",
         rotation.share);
  const int64_t turned = (whole_columns(rotation, depth) + 1) / 2 * 2;
  if (turned < 2 || turned > depth)
    fail(
        "[rotate] a share of {} of {} columns has no whole pairs; take an even depth of 2 or more, "
        "or another share",
        rotation.share, depth);
  return turned;
}

Tensor rotary_frequencies(const Rotation& rotation, int64_t depth, int64_t positions) {
  if (!(rotation.base > 1))
    fail("[rotate] base is {}; it must be above 1, such as 10000", rotation.base);
  if (!is_valid(rotation.scaling))
    fail("[rotate] the scaling has numbers out of range: factor {}, length {}",
         rotation.scaling.factor, rotation.scaling.length);
  const int64_t count = turned_columns(rotation, depth) / 2;
  const auto columns = static_cast<double>(whole_columns(rotation, depth));
  const double base = rotation.scaling.rule == RotaryRule::dynamic
                          ? grown_base(rotation, columns, positions)
                          : rotation.base;
  Tensor plain = (at::arange(count, at::kDouble) * (-2 * std::log(base) / columns)).exp();
  const double factor = rotation.scaling.factor;
  switch (rotation.scaling.rule) {
    case RotaryRule::none:
    case RotaryRule::dynamic:
      break;
    case RotaryRule::float16:
      return plain.to(at::kFloat).to(at::kHalf).to(at::kDouble);
    case RotaryRule::linear:
      return plain / factor;
    case RotaryRule::yarn: {
      const Tensor ramp = yarn_ramp(rotation, columns, count);
      return plain * (1 - ramp) + plain / factor * ramp;
    }
    case RotaryRule::llama3: {
      const Tensor share = llama3_share(rotation.scaling, plain);
      return plain * share + plain / factor * (1 - share);
    }
  }
  return plain;
}

double rotary_magnitude(const RotaryScaling& scaling) {
  return scaling.rule == RotaryRule::yarn ? 0.1 * std::log(scaling.factor) + 1 : 1;
}

}  // namespace attend
