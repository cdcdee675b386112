#pragma once

#include <cstdint>
#include <string>

#include "attend/base/settings.h"
#include "attend/models/transformer_config.h"

namespace attend {

// Settings of a decoder without encoder, by default in the shape of GPT-2 (Radford et al. 2019).
struct LanguageModelConfig : LayersConfig, TokenTables {
  int64_t layers = 4;
  int64_t context = 256;           // context length in tokens, including the start token
  bool tied = true;                // whether the output shares the embedding
  double embedding_deviation = 0;  // standard deviation of initial weights; 0: 1 / sqrt(depth)
  bool start = true;  // a start token precedes each text; if false, only texts without a source
  // Number of tokens drawn uniformly per training step as negatives; 0: softmax over all tokens.
  int64_t negatives = 0;

  LanguageModelConfig();

  // A pair's source and target share the context. Maximum tokens of each, without BOS and EOS.
  int64_t maximum_source_length() const { return context / 2; }
  int64_t maximum_target_length() const { return context - context / 2 - 1; }

  Settings settings();
  Settings weight_settings();
  std::string no_weights_reason() const {
    return LayersConfig::attends(layers - 1) ? "model.mechanism = " + self.mechanism
                                             : "model.layer = " + layer;
  }

 private:
  Setting context_setting();
  Settings own_weight_settings();
};

// The same over the items of a user's history, in the shape of SASRec (Kang & McAuley 2018): except
// for the start token, the context holds only the source; the target is the next item. Initial
// embeddings are small (Klenitskiy & Vasilev 2023), because a rare item's embedding stays near its
// initial value and adds noise to its logits.
struct RecommenderConfig : LanguageModelConfig {
  RecommenderConfig();

  int64_t maximum_source_length() const { return context - 1; }
  int64_t maximum_target_length() const { return context; }
  bool wants_joint_vocabulary() const { return true; }
};

}  // namespace attend
