#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "attend/base/settings.h"

namespace attend {

// What the target of an example is: a text, or a number that a network comes near.
enum class TargetKind { text, number };
inline EnumNames names_of(TargetKind) { return {"text", "number"}; }

// What targets that are numbers are standardised by, so that a network learns numbers around 0.
struct NumberScale {
  double mean = 0;
  double deviation = 0;  // 0: both are those of the targets of training

  Settings settings();  // keys data.*

  double standardised(double number) const { return (number - mean) / deviation; }
  double number(double standardised) const { return mean + deviation * standardised; }

  bool operator==(const NumberScale&) const = default;
};

// The mean and the standard deviation of targets, each with how often it is there. Error where all
// are one number, or too large for float64 to hold the two.
NumberScale scale_of(const std::unordered_map<std::string, int64_t>& targets);

// The number that a target is. Error where it is none or not finite.
double target_number(std::string_view text);

// A number as an answer is written. A network computes in float32 by how many deviations of the
// targets a number differs from their mean: the text has the digits down to a millionth of the
// leading digit of that deviation, but at least seven and at most seventeen.
std::string number_text(double number, double deviation);

}  // namespace attend
