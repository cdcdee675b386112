#pragma once

#include <cstdint>

#include "attend/base/settings.h"
#include "attend/models/transformer_config.h"

namespace attend {

// A decoder alone, by default in the shape of GPT-2 (Radford et al. 2019).
struct LanguageModelConfig : LayersConfig {
  int64_t layers = 4;
  int64_t context = 256;           // tokens that are seen at once, the start included
  bool tied = true;                // whether the output shares the embedding
  bool output_bias = false;        // of each token, where the output shares the embedding
  bool scale_embedding = true;     // by sqrt(depth)
  double embedding_deviation = 0;  // of its initial weights; 0: 1 / sqrt(depth)
  bool start = true;  // a start token precedes each text; without it, those without a source alone
  // Tokens that a step of training draws, evenly, to compare each right one with; 0: all tokens.
  int64_t negatives = 0;

  LanguageModelConfig();

  // A pair's source and target share the context: tokens of either, without BOS and EOS.
  int64_t maximum_source_length() const { return context / 2; }
  int64_t maximum_target_length() const { return context - context / 2 - 1; }

  Settings settings();
  Settings weight_settings();

 private:
  Setting context_setting();
  Settings own_weight_settings();
};

// The same over the items that somebody took, in the shape of SASRec (Kang & McAuley 2018): all but
// the start are of the source, and the next one is the target.
// Embeddings begin small (Klenitskiy & Vasilev 2023): a rare item's stays near where it began, and
// is noise in its logits.
struct RecommenderConfig : LanguageModelConfig {
  RecommenderConfig();

  int64_t maximum_source_length() const { return context - 1; }
  int64_t maximum_target_length() const { return context; }
  bool wants_joint_vocabulary() const { return true; }
};

}  // namespace attend
