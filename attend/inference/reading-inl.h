#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/inference/predictor.h"

namespace attend {

// Small enough to distribute 1,000 words evenly, large enough for fast matrix products.
constexpr int64_t sentences_per_batch = 64;

// Texts read before they are answered.
struct Predictor::Reading {
  std::vector<std::string> texts = {};  // set if answers are not searched for
  std::vector<Answer> answers;          // without candidates
  std::vector<EncodedPair> encoded;
  std::vector<int64_t> answered;  // texts that can be answered
};

}  // namespace attend
