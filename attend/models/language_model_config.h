#pragma once

#include <cstdint>

#include "attend/base/settings.h"
#include "attend/models/transformer_config.h"

namespace attend {

// A decoder alone, by default in the shape of GPT-2 (Radford et al. 2019).
struct LanguageModelConfig : LayersConfig {
  int64_t layers = 4;
  int64_t context = 256;  // tokens that are seen at once, the start included
  bool tied = true;       // whether the output shares the embedding

  LanguageModelConfig();

  // A pair's source and target share the context: tokens of either, without BOS and EOS.
  int64_t maximum_source_length() const { return context / 2; }
  int64_t maximum_target_length() const { return context - context / 2 - 1; }

  Settings settings();
};

}  // namespace attend
