#pragma once

#include <cstddef>
#include <cstdint>

#include "attend/nn/attention_choices.h"
#include "attend/nn/key_indexer.h"
#include "attend/nn/rotation.h"
#include "attend/nn/score_mixer.h"
#include "attend/nn/sparse_branches.h"

namespace attend {

// Heads with the same mechanism, computed by one call of attention().
struct HeadGroup {
  AttentionChoices choices = {};
  int64_t heads = 1;
  int64_t key_heads = 0;   // number of key and value heads, each shared by heads / key_heads query
                           // heads (Ainslie et al. 2023); must divide heads. 0: one per head
  bool rotary = false;     // queries and keys are rotated by position: rotate() in positions.h
  Rotation rotation = {};  // if rotary
  // A sigmoid of a linear map of the query's input multiplies the contexts before the output map
  // (Qiu et al. 2025).
  bool gated = false;
  // Pairs of heads subtract their weights: see HeadDifference.
  bool differential = false;
  // If above 0, keys and values are made from a vector of this depth per token: LatentHeads in
  // head_forms.h. Only as the only group, with key_heads 0 and a dot-product score.
  int64_t latent_depth = 0;
  int64_t rotary_depth = 0;  // depth of the rotated key that latent heads share
  // If block is above 0, three sparse branches: SparseBranches in sparse_branches.h. Needs scope
  // causal and softmax without a bias.
  SparseBranchSizes branches = {};
  // If keys is above 0, each query reads few keys: KeyIndexer in key_indexer.h. Not with latent or
  // differential heads or sparse branches.
  KeyIndexerSizes indexer = {};
  // Each query lowers the scores of keys for later queries: SelectiveBias in selective_bias.h. Only
  // as the only form, with a causal scope and a dot-product score.
  bool selective = false;
  // If above 0, queries read segments of this many keys by softmax and earlier ones by a memory:
  // SegmentMemory in segment_memory.h. Only as the only group and form, with score scaled_dot or
  // dot, scope causal and softmax without a bias.
  int64_t memory_segment = 0;
  // If queries is above 0, scores are mixed: ScoreMixer in score_mixer.h. Only as the only form,
  // with a causal scope, a dot-product score, and softmax without a bias.
  ScoreMixSizes mix = {};

  int64_t key_head_count() const { return key_heads == 0 ? heads : key_heads; }
  // Number of forms that the fields above give the heads. Most of them exclude each other.
  int forms() const {
    return int{differential} + int{latent_depth > 0} + int{branches.block > 0} +
           int{indexer.keys > 0} + int{selective} + int{memory_segment > 0} + int{mix.queries > 0};
  }
  // Whether each head attends by itself to all keys of its scope, made directly from the source.
  bool is_plain() const { return forms() == 0; }
};

// Error if the fields of one of `groups` groups contradict each other, or if its heads of this
// depth cannot be rotated.
void check_head_group(const HeadGroup& group, int64_t head_depth, size_t groups);

}  // namespace attend
