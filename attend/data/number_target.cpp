#include "attend/data/number_target.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed.h"

namespace attend {

Settings NumberScale::settings() {
  return {{.key = "data.target_mean",
           .value = &mean,
           .help = "mean of the targets, in their unit; unused if the deviation is 0",
           .is_measured = true},
          {.key = "data.target_deviation",
           .value = &deviation,
           .help = "standard deviation of the targets; 0: measure mean and deviation in training",
           .minimum = 0,
           .is_measured = true}};
}

NumberScale scale_of(const std::unordered_map<std::string, int64_t>& targets) {
  std::vector<std::pair<double, double>> numbers;  // number and count
  numbers.reserve(targets.size());
  for (const auto& [text, count] : targets)
    numbers.emplace_back(target_number(text), static_cast<double>(count));
  // A fixed order, because sums depend on it and the order of a hash table is arbitrary.
  std::sort(numbers.begin(), numbers.end());
  double all = 0, sum = 0, squares = 0;
  for (const auto& [number, count] : numbers) {
    all += count;
    sum += count * number;
  }
  const double mean = sum / all;
  for (const auto& [number, count] : numbers) squares += count * (number - mean) * (number - mean);
  const NumberScale scale{mean, std::sqrt(squares / all)};
  if (!std::isfinite(scale.mean) || !std::isfinite(scale.deviation))
    fail("the training targets are too large for a standard deviation; give them another unit");
  // The mean of equal numbers is rounded; hence their deviation may not be exactly 0.
  if (scale.deviation == 0 || numbers.front().first == numbers.back().first)
    fail(
        "every training target is the number {}, so the deviation is 0; at least two different "
        "ones are needed",
        numbers.empty() ? 0 : numbers[0].first);
  return scale;
}

double target_number(std::string_view text) {
  const auto number = parse_number<double>(trimmed(text));
  if (!number || !std::isfinite(*number))
    fail("target {} is not a finite number, which data.target = number needs; write it as -1.5e3",
         in_quotes(text));
  return *number;
}

double target_probability(std::string_view text) {
  const auto number = parse_number<double>(trimmed(text));
  if (!number || !(*number >= 0 && *number <= 1))
    fail("target {} is not a number from 0 to 1, which data.target = probability needs",
         in_quotes(text));
  return *number;
}

std::string number_text(double number, double deviation) {
  constexpr int float_digits = 7, double_digits = std::numeric_limits<double>::max_digits10;
  const auto decade = [](double size) { return static_cast<int>(std::floor(std::log10(size))); };
  int digits = float_digits;
  if (number != 0 && deviation > 0)
    digits +=
        std::clamp(decade(std::abs(number)) - decade(deviation), 0, double_digits - float_digits);
  return fmt::format("{:.{}g}", number, digits);
}

}  // namespace attend
