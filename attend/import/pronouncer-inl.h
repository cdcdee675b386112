#pragma once

#include <string>

#include "attend/files/safetensors.h"
#include "attend/models/pair_model.h"
#include "attend/text/text_tokenizer.h"

namespace attend::internal {

// Result of an import of g2p-en.
struct Pronouncer {
  PairModel model;
  TextTokenizer tokenizer;
  TensorFile weights;
};

// Reads the weights of g2p-en (Park & Kim 2019), a NumPy archive: a recurrent encoder of letters
// and a decoder of phonemes without attention. Error, naming the file, on an array that is missing,
// left over, or of another shape or type.
Pronouncer read_pronouncer(const std::string& path);

}  // namespace attend::internal
