#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "attend/base/settings.h"

namespace attend {

// Kind of target: a text, a number to approximate, any number of labels, or a number from 0 to 1
// such as the relevance of a passage. A span is a part of the second text of a pair.
enum class TargetKind { text, number, labels, probability, span };
inline EnumNames names_of(TargetKind) {
  return {"text", "number", "labels", "probability", "span"};
}

// Standardisation of numeric targets, with which a network learns numbers around 0.
struct NumberScale {
  double mean = 0;
  double deviation = 0;  // 0: mean and deviation are computed from the training targets

  Settings settings();  // keys data.*

  double standardised(double number) const { return (number - mean) / deviation; }
  double number(double standardised) const { return mean + deviation * standardised; }

  bool operator==(const NumberScale&) const = default;
};

// Returns the mean and the standard deviation of targets, weighted by their counts. Error if all
// are equal, or too large for float64.
NumberScale scale_of(const std::unordered_map<std::string, int64_t>& targets);

// Parses a numeric target. Error if it is not a finite number.
double target_number(std::string_view text);

// Parses a target of the kind probability. Error if it is not a number from 0 to 1.
double target_probability(std::string_view text);

// Formats a number as an answer. A network computes the standardised number in float32. Hence the
// text has digits down to a millionth of the leading digit of the deviation, but at least seven and
// at most seventeen.
std::string number_text(double number, double deviation);

}  // namespace attend
