#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/inference/predictor.h"

namespace attend {

// Small enough for 1,000 words to be shared out evenly, large enough for full-speed products.
constexpr int64_t sentences_per_batch = 64;

// What is known of texts before they are answered.
struct Predictor::Reading {
  std::vector<Prediction> predictions;
  std::vector<EncodedPair> encoded;
  std::vector<int64_t> answered;  // which texts can be
};

}  // namespace attend
