#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/files/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/pair_model.h"

namespace attend::internal {

// Memory of an import as a multiple of the weights: foreign ones, converted ones and one in
// progress.
constexpr double import_copies = 2.5;

// Score of a token that is never answered: its probability is 0 in float32.
constexpr double never_answered = -1e4;

// Converts the tensors of a foreign model to the weights of `ours`, which has vocabularies but no
// network. Messages name `folder`. Error on a tensor that is missing, left over, or of another
// shape or type. Tensors of `other_heads` may be left over, with a note.
TensorFile converted(const ForeignModel& model, const TensorFile& theirs, const PairModel& ours,
                     const FixedTokens& fixed, const std::vector<ForeignClass>& other_heads,
                     const std::string& folder, Notes& notes);

// Returns these rows of theirs, which our fixed tokens get, and then all of theirs.
at::Tensor with_fixed_rows(const at::Tensor& theirs, const std::vector<int64_t>& rows);

// Renames tensors of files that were converted from TensorFlow: LayerNorm.gamma and .beta become
// weight and bias.
void rename_norms(TensorFile& theirs);

}  // namespace attend::internal
