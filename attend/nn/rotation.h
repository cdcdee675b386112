#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "attend/base/enum_names.h"

namespace attend {

// Which two columns turn together: (2 i, 2 i + 1) (Su et al. 2021; GPT-J, Cohere), or i of the
// first half of the turned columns and i of the second (GPT-NeoX, Llama).
enum class RotaryPairs { adjacent, halves };
inline EnumNames names_of(RotaryPairs) { return {"adjacent", "halves"}; }

// How frequencies differ from powers of the base; most rules are for sequences longer than in
// training.
enum class RotaryRule {
  none,
  linear,   // f / factor (Chen et al. 2023)
  dynamic,  // base (s L / L0 - (s - 1))^(d / (d - 2)) for sequences of L > L0 positions
  yarn,     // f / factor for slow frequencies, f for fast ones, between them a ramp (Peng et al.
            // 2024, 3.2 and 3.4); sines and cosines times 0.1 ln(factor) + 1
  llama3,   // f / factor for wavelengths above length / low, f for wavelengths below length / high,
            // between them interpolated (Grattafiori et al. 2024; Llama 3.1's configuration)
  float16,  // f rounded to float16, as in models that were trained with such frequencies (ESM-2)
};

struct RotaryScaling {
  RotaryRule rule = RotaryRule::none;
  double factor = 1;   // s, above 0; 1 or more except for linear
  int64_t length = 0;  // L0, positions in training, 1 or more; unused by linear
  double fast = 32;    // yarn: turns within `length` from which on f is kept
  double slow = 1;     // yarn: turns up to which it is divided
  double low = 1;      // llama3
  double high = 4;     // llama3, above low

  bool operator==(const RotaryScaling&) const = default;
};

// Parses "none", "float16", "linear:FACTOR", "dynamic:FACTOR,LENGTH",
// "yarn:FACTOR,LENGTH[,FAST,SLOW]" or "llama3:FACTOR,LENGTH[,LOW,HIGH]"; empty is none. Error
// otherwise, and on numbers out of range.
RotaryScaling parse_rotary_scaling(std::string_view text);

// A rotation of pairs of columns by angles that grow with the position.
struct Rotation {
  double base = 10000;  // above 1
  double share = 1;     // share of the columns that turn, the first ones; above 0, at most 1
  RotaryPairs pairs = RotaryPairs::adjacent;
  RotaryScaling scaling = {};

  bool operator==(const Rotation&) const = default;
};

// Number of the first columns that turn, of `depth`: two for each frequency base^(-2 i / n), i < n
// / 2, with n the whole part of share depth. Error on a share out of range, if no column turns, or
// if the number exceeds the depth, which is then odd.
int64_t turned_columns(const Rotation& rotation, int64_t depth);

// Angle per position of each pair of columns, float64 [turned_columns / 2] on the CPU. `positions`:
// length of the whole sequence, used by dynamic only. Error as turned_columns, and on a base or
// scaling out of range.
at::Tensor rotary_frequencies(const Rotation& rotation, int64_t depth, int64_t positions = 0);

// Factor of sines and cosines: 0.1 ln(factor) + 1 for yarn, otherwise 1. Scores of a rotated query
// and key grow by its square.
double rotary_magnitude(const RotaryScaling& scaling);

}  // namespace attend
