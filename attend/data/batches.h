#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace attend {

// One source and one target as ids, without start or end tokens.
struct EncodedPair {
  std::vector<int64_t> source;  // empty where there is none, or frames instead
  std::vector<int64_t> target;
  at::Tensor frames = {};  // [S, F] float: of a source that is an image or a sound
  bool no_eos = false;     // no EOS follows the target: its length, or what follows, is known
  std::optional<double> number = {};  // standardised: the target; its one token then says nothing

  int64_t source_length() const {
    return frames.defined() ? frames.size(0) : static_cast<int64_t>(source.size());
  }
  // What is predicted: the end too, if there is one.
  int64_t target_length() const { return static_cast<int64_t>(target.size()) + (no_eos ? 0 : 1); }
};

// Takes out the pairs whose target holds a token that is unknown.
void drop_unknown_targets(std::vector<EncodedPair>& pairs);

// Padded with Vocabulary::padding on the right.
struct Batch {
  at::Tensor source;          // [B, S] int64, or [B, S, F] float frames, padded with 0
  at::Tensor source_lengths;  // [B] int64
  at::Tensor target;          // [B, T] int64: the target and, unless it continues, Vocabulary::eos
  at::Tensor target_lengths;  // [B] int64, end included
  at::Tensor numbers = {};    // [B] float, standardised: of targets that are numbers
};

// Indices into `pairs`, grouped so that lengths within a batch are near: shuffled, sorted by length
// within pools of many batches, cut, and the batches shuffled. The order is a function of (seed,
// epoch) alone. Every index appears once; the last batch may be smaller.
std::vector<std::vector<int64_t>> batches_by_length(const std::vector<EncodedPair>& pairs,
                                                    int64_t batch_size, uint64_t seed,
                                                    int64_t epoch);

// The same with batches of as many pairs as have at most `tokens` tokens of source and target,
// ends and padding included; a longer pair is a batch by itself.
std::vector<std::vector<int64_t>> batches_by_tokens(const std::vector<EncodedPair>& pairs,
                                                    int64_t tokens, uint64_t seed, int64_t epoch);

// The pairs of those indices, padded to the longest. Error on no index, one out of range, or
// frames of which some have another depth or are missing.
Batch make_batch(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& indices);

}  // namespace attend
