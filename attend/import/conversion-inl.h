#pragma once

#include <cstdint>
#include <string>

#include "attend/data/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/pair_model.h"

namespace attend::internal {

// Memory of an import, in sizes of the weights: theirs, ours and what is being converted.
constexpr double import_copies = 2.5;

// The score of a token that is never answered: its probability is 0 in float32.
constexpr double never_answered = -1e4;

// The weights of `ours`, whose vocabularies are made and whose network is not, of their tensors.
// Messages name `folder`. Error on a tensor that is missing, left over, of another shape or type.
// Tensors of `other_heads` may be left over, with a note.
TensorFile converted(const ForeignModel& model, const TensorFile& theirs, const PairModel& ours,
                     const FixedTokens& fixed, const std::vector<ForeignClass>& other_heads,
                     const std::string& folder, Notes& notes);

// Gives tensors the names of today: LayerNorm.gamma and .beta, as files converted from TensorFlow
// have them, are its weight and bias.
void rename_norms(TensorFile& theirs);

}  // namespace attend::internal
