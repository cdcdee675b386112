#pragma once

#include <cstdint>
#include <string>

#include "attend/data/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/pair_model.h"

namespace attend::internal {

// The score of a token that is never answered: its probability is 0 in float32.
constexpr double never_answered = -1e4;

// The weights of `ours`, whose vocabularies are made and whose network is not, of their tensors.
// Messages name `folder`. Error on a tensor that is missing, left over, of another shape or type.
TensorFile converted(const ForeignModel& model, const TensorFile& theirs, const PairModel& ours,
                     const FixedTokens& fixed, const std::string& folder);

}  // namespace attend::internal
