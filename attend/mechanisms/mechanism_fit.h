#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "attend/nn/mechanism_table.h"

namespace attend {

// Two sentences and their vectors in a trained encoder and decoder.
struct SentencePair {
  std::vector<std::string> source, target;
  at::Tensor annotations;  // [source, D]
  at::Tensor states;       // [target, D]: decoder state before each target word
  at::Tensor weights;      // [target, source]: additive attention of the trained model
};

// Weights of a mechanism on the pair, with labels of rows and columns.
struct FittedMap {
  std::vector<std::string> queries, keys;
  at::Tensor weights;
};

// Fits the row's parameters, and one linear layer each for queries and keys. The target contexts
// are the contexts of the trained model (between the sentences) or words of the sentence itself
// (within one). Deterministic on one machine: seeds LibTorch's default generator and uses one
// thread.
FittedMap fitted_map(const Mechanism& row, const SentencePair& pair);

// The row's choices, with reaches and grids adapted to a sentence of `words` words.
AttentionChoices choices_for_sentence(const Mechanism& row, int64_t words);

}  // namespace attend
