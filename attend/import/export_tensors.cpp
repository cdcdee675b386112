#include "attend/base/error.h"
#include "attend/import/conversion-inl.h"
#include "attend/import/export-inl.h"

namespace attend::internal {
namespace {

using at::Tensor;

constexpr int64_t fixed_rows = Vocabulary::unknown + 1;

// Biases of all tokens, [1, V]. A token that a fixed token of ours replaces in answers gets its
// bias.
Tensor token_bias_row(const Tensor& ours, const ForeignModel& theirs) {
  Tensor scores = ours.slice(0, fixed_rows).clone();
  for (int64_t id = 0; id < fixed_rows; ++id)
    if (const std::optional<int64_t>& token = theirs.fixed->scores[static_cast<size_t>(id)])
      scores[*token] = ours[id];
  return scores.unsqueeze(0);
}

// Returns the tensor, or the part of it, that Conversion makes the parameter from.
Tensor exported(const TensorRow& row, const Tensor& ours, const ExportedTokens& tokens,
                const ForeignModel& theirs) {
  switch (row.use) {
    case TensorUse::token_rows:
    case TensorUse::repeated:
      return ours.index_select(0, at::tensor(tokens.vectors, at::kLong));
    case TensorUse::repeated_answers:
      return ours.index_select(0, at::tensor(tokens.answers, at::kLong));
    case TensorUse::output_rows:
    case TensorUse::repeated_outputs:
      return ours.index_select(0, at::tensor(tokens.outputs, at::kLong));
    case TensorUse::token_biases:
      return ours.index_select(0, at::tensor(tokens.biases, at::kLong));
    case TensorUse::second_row:
      // Only their difference changes probabilities.
      return ours.slice(0, 1, 2) - ours.slice(0, 0, 1);
    case TensorUse::token_bias_row:
      return token_bias_row(ours, theirs);
    case TensorUse::first_row_added:
      return at::zeros({1, ours.size(1)});
    case TensorUse::transposed:
      return ours.t();
    case TensorUse::position_rows:
      return at::cat({at::zeros({theirs.first_position, ours.size(1)}), ours});
    case TensorUse::convolution:
      return ours.unflatten(1, {-1, ours.size(0)}).transpose(1, 2);
    case TensorUse::rotary_rows:
      return ours.unflatten(0, {theirs.heads, -1, 2}).transpose(1, 2).flatten(0, 2);
    case TensorUse::class_tokens:
      return ours.slice(1, row.part, row.part + 1);
    case TensorUse::class_positions:
      return at::zeros_like(ours);  // already added to class tokens
    case TensorUse::grid_positions:
      return ours.unsqueeze(0);
    case TensorUse::patch_weights: {
      const FrameConfig& frames = theirs.images->frames;
      return ours.reshape({ours.size(0), frames.channels(), frames.patch, frames.patch});
    }
    default:
      return ours;
  }
}

// Error if a tensor that must be zero there became nonzero in training.
void check_zeros(const std::string& name, const Tensor& ours, const ExportedFolder& made) {
  if (ours.count_nonzero().item<int64_t>() > 0)
    fail(
        "{} is not 0 after training, and {} lacks it; train a new import, which has "
        "model.fixed_biases = true",
        name, made.architecture);
}

// Error if training gave tokens scores, which have no tensor there.
void check_scores(const std::string& name, const Tensor& ours, const ExportedFolder& made) {
  const Tensor answered = ours.masked_select(ours > never_answered / 2);
  if (made.again.fixed && answered.count_nonzero().item<int64_t>() > 0)
    fail(
        "{} holds token scores from training, and {} lacks them; train a new import, which has "
        "model.fixed_output_bias = true",
        name, made.architecture);
}

// Axis along which the parts of one tensor are joined, in the order of the table.
int64_t axis_of(TensorUse use) {
  return use == TensorUse::transposed || use == TensorUse::grid_positions ? 1 : 0;
}

}  // namespace

void add_exported(const PairModel& model, const ExportedTokens& tokens, ExportedFolder& made) {
  const auto parameters = model.network->named_parameters();
  const ForeignModel& theirs = made.again;
  const size_t head = theirs.tensors.size() - theirs.head_tensors;
  for (size_t i = 0; i < theirs.tensors.size(); ++i) {
    const TensorRow& row = theirs.tensors[i];
    if (row.use == TensorUse::unused || (is_repeated(row.use) && !tokens.separate)) continue;
    const bool layered = row.ours.find("{}") != std::string::npos;
    for (int64_t layer = 0; layer < (layered ? theirs.layers : 1); ++layer) {
      const std::string own = fmt::format(fmt::runtime(row.ours), layer);
      const Tensor* const ours = parameters.find(own);
      if (ours == nullptr) continue;  // check_same() names the setting by which it is missing
      if (row.theirs.empty()) {
        if (row.use == TensorUse::copied) check_zeros(own, *ours, made);
        if (row.use == TensorUse::token_biases) check_scores(own, *ours, made);
        continue;
      }
      const Tensor part = exported(row, ours->detach(), tokens, theirs);
      const std::string name = fmt::format(fmt::runtime(row.theirs), layer);
      Tensor& whole = made.file.tensors[(i < head ? theirs.prefix : "") + name];
      whole = whole.defined() ? at::cat({whole, part}, axis_of(row.use)) : part.contiguous();
    }
  }
}

void add_unit(const PairModel& model, ExportedFolder& made) {
  if (!model.text.wants_numbers()) return;
  const NumberScale& scale = model.text.target_scale;
  for (const TensorRow& row : made.again.tensors) {
    if (row.ours != "output.weight" && row.ours != "output.bias") continue;
    Tensor& theirs = made.file.tensors[row.theirs];
    const double zero = row.ours == "output.bias" ? scale.mean : 0;
    theirs = (theirs.to(at::kDouble) * scale.deviation + zero).to(at::kFloat);
  }
}

}  // namespace attend::internal
