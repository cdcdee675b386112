#pragma once

#include <cstdint>

namespace attend {

// The number of target tokens if targets are numbers instead of texts.
constexpr int64_t number_targets = 0;

// The form of a network's answers.
struct TargetShape {
  TargetShape(int64_t its_tokens, bool is_set = false)  // NOLINT: a vocabulary's size is a shape
      : tokens(its_tokens), is_label_set(is_set) {}

  // One probability. The network gives its logit as a number.
  static TargetShape probability() {
    TargetShape shape(number_targets);
    shape.is_probability = true;
    return shape;
  }

  bool is_number() const { return tokens == number_targets; }

  int64_t tokens;  // size of the vocabulary, or number_targets
  bool is_probability = false;
  bool is_label_set;  // an answer is any number of labels, each with its own probability
};

}  // namespace attend
