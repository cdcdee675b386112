#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/base/settings.h"

namespace attend {

// Settings of the tables of tokens, for models that answer with texts.
struct TokenTables {
  bool output_bias = false;        // bias per token, if the output shares an embedding
  bool fixed_output_bias = false;  // training leaves the biases of tokens unchanged
  bool scale_embedding = true;     // by sqrt(depth)
  // Padding, BOS and EOS share the vectors of these three tokens, numbered from 0 after
  // Vocabulary::unknown, such as "0, 0, 1"; empty: they have vectors of their own.
  std::string shared_tokens = {};

  Settings token_settings();  // keys model.*
  // The three tokens, or none. Error if the text does not list three numbers.
  std::vector<int64_t> shared() const;
  // The same as EmbeddingForm::equal.
  std::vector<std::vector<int64_t>> equal_tokens() const;
};

}  // namespace attend
