#pragma once

#include <string>

#include "attend/data/safetensors.h"
#include "attend/data/text_tokenizer.h"
#include "attend/models/pair_model.h"

namespace attend::internal {

// What an import of g2p-en writes.
struct Pronouncer {
  PairModel model;
  TextTokenizer tokenizer;
  TensorFile weights;
};

// The weights of g2p-en (Park & Kim 2019), an archive of NumPy: a recurrent encoder of letters and
// a decoder of phonemes without attention. Error, naming the file, on an array that is missing,
// left over, of another shape or another type.
Pronouncer read_pronouncer(const std::string& path);

}  // namespace attend::internal
