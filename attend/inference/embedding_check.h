#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/inference/model.h"

namespace attend {

// Numbers of texts with a vector of other bits than among the other texts.
struct EmbeddingCheck {
  int64_t texts = 0;      // compared; texts without a vector are left out
  int64_t by_itself = 0;  // the text is the only one of its call
  int64_t reversed = 0;   // the texts are in reverse order
  int64_t threads = 0;    // the other model computes

  bool agrees() const { return by_itself == 0 && reversed == 0 && threads == 0; }
};

// Compares the bits of Embedding::whole and Embedding::vectors. `other`: the same folder, loaded
// with another number of threads. Errors as Model::embed().
EmbeddingCheck check_embeddings(const Model& model, const Model& other,
                                const std::vector<std::string>& texts);

}  // namespace attend
