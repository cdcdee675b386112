#pragma once

#include <string>

#include "attend/files/safetensors.h"
#include "attend/models/pair_model.h"
#include "attend/text/text_tokenizer.h"

namespace attend::internal {

// A model that is imported from a file instead of a folder of transformers.
struct ForeignFile {
  PairModel model;
  TextTokenizer tokenizer;
  TensorFile weights;
};

// Reads the weights of g2p-en (Park & Kim 2019), a NumPy archive: a recurrent encoder of letters
// and a decoder of phonemes without attention. Error, naming the file, on an array that is missing,
// left over, or of another shape or type.
ForeignFile read_pronouncer(const std::string& path);

// Reads a .keras file as read_keras_layers() describes it, and the tokenizers of Keras for
// characters in the only .pkl file next to it: a dictionary with X_tokenizer and max_X_len for each
// of two sides X. The target's knows a tab and a line break, which begin and end answers. Error,
// naming file and remedy, if a file or an entry is missing or of another form.
ForeignFile read_keras_model(const std::string& path);

}  // namespace attend::internal
