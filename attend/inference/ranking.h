#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"

namespace attend {

// Which items the one that is right is ranked among.
struct RankOptions {
  bool keep_seen =
      false;              // those of the source too; otherwise a right item that was seen is a miss
  int64_t negatives = 0;  // so many others, drawn evenly for each example; 0: all items of training
  uint64_t seed = 1;      // of what is drawn
};

// The rank of each example's target, an item, behind the items of its source. Items that were not
// in training are left out of sources, and are nowhere in a ranking. The answers have a rank
// alone. Error where the model ranks no items.
Evaluation rank_next(const Model& model, const std::vector<Example>& examples,
                     const RankOptions& options, const Report& report = {});

// The same among the same items where the more frequent an item is in training the higher it is
// ranked, whatever the source holds; where two are as frequent, in the order of their names.
Evaluation rank_popular(const Model& model, const std::vector<Example>& examples,
                        const RankOptions& options);

// Right items that no ranking holds.
struct RankMisses {
  int64_t unknown = 0;  // were not in training
  int64_t seen = 0;     // are items of their source, which are left out
};
RankMisses count_misses(const Model& model, const std::vector<Example>& examples,
                        const Evaluation& ranked);

}  // namespace attend
