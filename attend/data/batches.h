#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace attend {

// A source and a target as ids, without start and end tokens.
struct EncodedPair {
  // As the SourceShape says, such as PairForm; empty if the source is missing or consists of
  // frames.
  std::vector<int64_t> source;
  std::vector<int64_t> target;
  at::Tensor frames = {};  // [S, F] float, if the source is an image, a sound or the like
  bool no_eos = false;     // no EOS after the target: its length, or its continuation, is known
  std::optional<double> number = {};  // standardised numeric target; `target` is then a placeholder
  // Ids of all labels; `target` is then a placeholder, too.
  std::optional<std::vector<int64_t>> labels = {};

  int64_t source_length() const {
    return frames.defined() ? frames.size(0) : static_cast<int64_t>(source.size());
  }
  // Number of predictions, including EOS unless no_eos.
  int64_t target_length() const { return static_cast<int64_t>(target.size()) + (no_eos ? 0 : 1); }
};

// Removes the pairs with an unknown token in the target.
void drop_unknown_targets(std::vector<EncodedPair>& pairs);

// Padded with Vocabulary::padding on the right.
struct Batch {
  at::Tensor source;          // [B, S] int64, or [B, S, F] float frames, padded with 0
  at::Tensor source_lengths;  // [B] int64
  at::Tensor target;          // [B, T] int64: the target and, unless no_eos, Vocabulary::eos
  at::Tensor target_lengths;  // [B] int64, including EOS
  at::Tensor numbers = {};    // [B] float: standardised numeric targets
  at::Tensor labels = {};     // [B, L] int64: ids of the labels of each pair
};

// Returns indices into `pairs`, grouped to batches of similar lengths. Indices are shuffled and
// sorted by length within pools of many batches; pools are cut into batches, and these are
// shuffled. The order depends only on (seed, epoch). Every index appears once; the last batch may
// be smaller.
std::vector<std::vector<int64_t>> batches_by_length(const std::vector<EncodedPair>& pairs,
                                                    int64_t batch_size, uint64_t seed,
                                                    int64_t epoch);

// Like batches_by_length, but each batch has at most `tokens` tokens of source and target,
// including ends and padding. A longer pair is a batch by itself.
std::vector<std::vector<int64_t>> batches_by_tokens(const std::vector<EncodedPair>& pairs,
                                                    int64_t tokens, uint64_t seed, int64_t epoch);

// Returns the batch of the pairs at `indices`, padded to the longest pair. Error if `indices` is
// empty or out of range, or frames are missing or differ in depth.
Batch make_batch(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& indices);

}  // namespace attend
