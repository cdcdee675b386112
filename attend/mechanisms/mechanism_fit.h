#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "attend/nn/mechanism_table.h"

namespace attend {

// Two sentences, and what a trained encoder and decoder made of them.
struct SentencePair {
  std::vector<std::string> source, target;
  at::Tensor annotations;  // [source, D]
  at::Tensor states;       // [target, D]: before each target word
  at::Tensor weights;      // [target, source]: of the trained model's additive attention
};

// A mechanism's weights on the pair, and what its rows and columns are.
struct FittedMap {
  std::vector<std::string> queries, keys;
  at::Tensor weights;
};

// Fits the row's parameters, and a linear layer each for queries and keys, until its contexts are
// near those of the trained model (between the sentences) or words of the sentence itself (within
// one). The same on every call and machine: it seeds LibTorch's default generator, and computes
// with one thread.
FittedMap fitted_map(const Mechanism& row, const SentencePair& pair);

// The row's choices with reaches and grids that fit a sentence of so many words.
AttentionChoices choices_for_sentence(const Mechanism& row, int64_t words);

}  // namespace attend
