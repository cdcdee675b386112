#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"

namespace attend {

// Items with which the right one is compared.
struct RankOptions {
  // Also rank items of the source; otherwise a right item that was seen is a miss.
  bool keep_seen = false;
  int64_t negatives = 0;  // other items, drawn evenly per example; 0: all items of training
  uint64_t seed = 1;      // random seed of the draws
};

// Ranks each example's target item as the next item after its source. Items that were not in
// training are left out of sources and never ranked. Answers have only a rank. Error if the model
// does not rank items.
Evaluation rank_next(const Model& model, const std::vector<Example>& examples,
                     const RankOptions& options, const Report& report = {});

// Ranks the same items by their frequency in training, the most frequent first, independent of the
// source. Equally frequent items are ordered by name.
Evaluation rank_popular(const Model& model, const std::vector<Example>& examples,
                        const RankOptions& options);

// Right items that are in no ranking.
struct RankMisses {
  int64_t unknown = 0;  // not in training
  int64_t seen = 0;     // items of their source, which are left out
};
RankMisses count_misses(const Model& model, const std::vector<Example>& examples,
                        const Evaluation& ranked);

}  // namespace attend
