#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "attend/base/error.h"
#include "attend/import/conversion-inl.h"
#include "attend/models/model_size.h"
#include "attend/text/vocabulary.h"

namespace attend::internal {
namespace {

using at::Tensor;

constexpr int64_t first_rows = Vocabulary::unknown + 1;

class Conversion {
 public:
  Conversion(const ForeignModel& model, const TensorFile& theirs, const PairModel& ours,
             const FixedTokens& fixed, const std::string& folder)
      : model_(model),
        theirs_(theirs),
        folder_(folder),
        outline_(outline(ours)->named_parameters()),
        fixed_(fixed) {
    std::vector<int64_t> rows(fixed.rows.begin(), fixed.rows.end());
    for (int64_t id = 0; id < model.tokens; ++id) rows.push_back(id);
    rows_ = at::tensor(rows, at::kLong);
  }

  TensorFile all() {
    check_output();
    for (const TensorRow& row : model_.tensors) {
      const bool layered = (row.theirs + row.ours).find("{}") != std::string::npos;
      for (int64_t layer = 0; layer < (layered ? model_.layers : 1); ++layer)
        take({fmt::format(fmt::runtime(row.theirs), layer),
              fmt::format(fmt::runtime(row.ours), layer), row.use, row.part, row.parts});
    }
    for (const auto& item : outline_)
      if (!made_.tensors.contains(item.key()))
        fail("{}: no tensor gives {}, which a model of type {} has", folder_, item.key(),
             model_.config.type);
    return std::move(made_);
  }

  // Error on a tensor that was not used and belongs to no head of the type.
  void check_left_over(const std::vector<ForeignClass>& heads, Notes& notes) const {
    std::set<std::string> known;
    for (const ForeignClass& head : heads) {
      known.insert(head.required.begin(), head.required.end());
      known.insert(head.others.begin(), head.others.end());
    }
    std::vector<std::string> left;
    for (const auto& [name, tensor] : theirs_.tensors) {
      if (used_.contains(name)) continue;
      const std::string bare =
          name.starts_with(model_.prefix) ? name.substr(model_.prefix.size()) : name;
      if (!known.contains(bare) && !known.contains(name))
        fail(
            "{}: tensor {} does not belong to a part of {} that is read; remove it, or name "
            "another class",
            folder_, in_quotes(name), model_.architecture);
      left.push_back(name);
    }
    if (!left.empty())
      notes.push_back(fmt::format("{}: ignored, because {} has no such part: {}", folder_,
                                  model_.architecture, fmt::join(left, ", ")));
  }

 private:
  // [channels, 1], to broadcast over the pixels of a patch.
  Tensor per_channel(double PixelScale::*number) const {
    std::vector<double> numbers;
    for (const PixelScale& channel : model_.images->pixels) numbers.push_back(channel.*number);
    return at::tensor(numbers, at::kDouble).unsqueeze(1);
  }

  static bool may_be_absent(TensorUse use) { return is_repeated(use) || use == TensorUse::unused; }

  using Found = std::map<std::string, Tensor>::const_iterator;

  Found found_by(const std::string& name) const {
    const Found found = theirs_.tensors.find(model_.prefix + name);
    return found == theirs_.tensors.end() ? theirs_.tensors.find(name) : found;
  }

  // The tensor that repeats a parameter; some files have only that one.
  Found repetition_of(const std::string& ours) const {
    for (const TensorRow& row : model_.tensors) {
      if (!is_repeated(row.use) || row.ours != ours) continue;
      const Found found = found_by(row.theirs);
      if (found != theirs_.tensors.end()) return found;
    }
    return theirs_.tensors.end();
  }

  void check_output() const {
    if (model_.tied || model_.output.empty() || found_by(model_.output) != theirs_.tensors.end())
      return;
    fail(
        "{}: tie_word_embeddings of config.json is false, and tensor {} is missing; set the key to "
        "true if the output is the embedding",
        folder_, in_quotes(model_.output));
  }

  void take(const TensorRow& row) {
    if (row.theirs.empty()) return use(row, "", at::zeros(shape_of(row, {})));
    auto found = found_by(row.theirs);
    if (found == theirs_.tensors.end() && model_.tied && !may_be_absent(row.use))
      found = repetition_of(row.ours);
    if (found == theirs_.tensors.end() && row.use == TensorUse::token_bias_row)
      return use(row, "", at::zeros(shape_of(row, {})));
    if (found == theirs_.tensors.end() && may_be_absent(row.use)) return;
    if (found == theirs_.tensors.end())
      fail("{}: tensor {} is missing", folder_, in_quotes(row.theirs));
    used_.insert(found->first);
    if (row.use == TensorUse::unused) return;
    check(row, found->first, found->second);
    use(row, found->first, found->second.to(at::kFloat));
  }

  // Expected shape of their tensor, from the shape of the parameter.
  std::vector<int64_t> shape_of(const TensorRow& row, const Tensor& tensor) const {
    std::vector<int64_t> shape = outline_[row.ours].sizes().vec();
    const bool has_token_rows =
        row.use == TensorUse::token_rows || row.use == TensorUse::output_rows ||
        row.use == TensorUse::token_biases || (is_repeated(row.use) && shape[0] == rows_.size(0));
    if (has_token_rows) shape[0] = model_.tokens;
    if (row.use == TensorUse::second_row) shape[0] = 1;
    shape[0] *= row.parts;
    if (row.use == TensorUse::transposed) std::reverse(shape.begin(), shape.end());
    if (row.use == TensorUse::convolution) shape = {shape[0], shape[0], shape[1] / shape[0]};
    if (row.use == TensorUse::token_bias_row) shape = {1, model_.tokens};
    if (row.use == TensorUse::position_rows) shape[0] = model_.positions;
    if (row.use == TensorUse::class_tokens) shape = {1, 1, shape.back()};
    if (row.use == TensorUse::class_positions || row.use == TensorUse::grid_positions)
      shape = {1, model_.positions, shape.back()};
    if (row.use == TensorUse::patch_weights) {
      const FrameConfig& frames = model_.images->frames;
      shape = {shape[0], frames.channels(), frames.patch, frames.patch};
    }
    // Any number of token types.
    if (row.use == TensorUse::first_row_added && tensor.dim() > 0 && tensor.size(0) > 0)
      shape[0] = tensor.size(0);
    return shape;
  }

  void check(const TensorRow& row, const std::string& name, const Tensor& tensor) const {
    const std::vector<int64_t> shape = shape_of(row, tensor);
    if (tensor.sizes() != at::IntArrayRef(shape))
      fail("{}: tensor {} has shape [{}]; config.json describes [{}]", folder_, in_quotes(name),
           fmt::join(tensor.sizes(), ", "), fmt::join(shape, ", "));
    if (!tensor.is_floating_point())
      fail("{}: tensor {} holds no floating-point numbers; quantised weights are not read", folder_,
           in_quotes(name));
  }

  // The part of a tensor that the row takes, along the axis of the layer's output.
  static Tensor part_of(const TensorRow& row, const Tensor& tensor, int64_t axis) {
    const int64_t size = tensor.size(axis) / row.parts;
    return tensor.slice(axis, row.part * size, (row.part + 1) * size);
  }

  // Reorders the rows of each head: theirs rotate k with k + depth / 2, ours 2 k with 2 k + 1.
  Tensor rotary_rows(const Tensor& theirs) const {
    return theirs.unflatten(0, {model_.heads, 2, -1}).transpose(1, 2).flatten(0, 2).contiguous();
  }

  // Returns scores by our ids; scores of tokens in FixedTokens::scores move to fixed tokens.
  Tensor token_biases(const Tensor& theirs) const {
    Tensor made = theirs.index_select(0, rows_);
    for (int64_t id = 0; id < first_rows; ++id) {
      const std::optional<int64_t>& token = fixed_.scores[static_cast<size_t>(id)];
      if (token) made[first_rows + *token] = never_answered;
      if (token)
        made[id] = theirs[*token];
      else
        made[id] = never_answered;
    }
    return made;
  }

  // Rows of a repeated tensor that may differ, by their token; the values are our fixed tokens.
  std::map<int64_t, int64_t> own_rows(TensorUse use) const {
    std::map<int64_t, int64_t> own;
    if (use == TensorUse::repeated_answers) own[fixed_.rows[Vocabulary::bos]] = Vocabulary::bos;
    for (int64_t id = 0; id < first_rows && use == TensorUse::repeated_outputs; ++id)
      if (const auto& token = fixed_.scores[static_cast<size_t>(id)]) own[*token] = id;
    return own;
  }

  // Takes these rows, and checks the others.
  void take_repeated(const TensorRow& row, const std::string& name, const Tensor& tensor,
                     Tensor& made) const {
    const bool has_token_rows = made.size(0) == rows_.size(0);
    const Tensor expected = has_token_rows ? made.slice(0, first_rows) : made;
    std::map<int64_t, int64_t> own = own_rows(row.use);
    for (const auto& [token, id] : own) made[id] = tensor[token];
    own[tensor.size(0)] = 0;
    bool is_equal = true;
    for (int64_t begin = 0; const auto& [token, id] : own) {
      is_equal = is_equal && tensor.slice(0, begin, token).equal(expected.slice(0, begin, token));
      begin = token + 1;
    }
    if (!is_equal)
      fail("{}: tensor {} differs from the one that it repeats; such models are not read", folder_,
           in_quotes(name));
  }

  void use(const TensorRow& row, const std::string& name, const Tensor& tensor) {
    Tensor& made = made_.tensors[row.ours];
    switch (row.use) {
      case TensorUse::copied:
        made = part_of(row, tensor, 0).contiguous();
        return;
      case TensorUse::transposed:
        made = part_of(row, tensor, 1).t().contiguous();
        return;
      case TensorUse::convolution:
        made = tensor.transpose(1, 2).flatten(1).contiguous();
        return;
      case TensorUse::rotary_rows:
        made = rotary_rows(part_of(row, tensor, 0));
        return;
      case TensorUse::token_rows:
      case TensorUse::output_rows:
        made = tensor.index_select(0, rows_);
        return;
      case TensorUse::token_biases:
        made = token_biases(tensor);
        return;
      case TensorUse::second_row:
        made = at::cat({at::zeros_like(tensor), tensor});
        return;
      case TensorUse::token_bias_row:
        made = token_biases(tensor[0]);
        return;
      case TensorUse::position_rows:
        made = tensor.slice(0, model_.first_position,
                            model_.first_position + outline_[row.ours].size(0));
        return;
      case TensorUse::first_row_added:
        made = made + tensor.slice(0, 0, 1);
        return;
      case TensorUse::class_tokens:
        made = made.defined() ? at::cat({made, tensor}, 1) : tensor;
        return;
      case TensorUse::class_positions:
        made = made + tensor.slice(1, 0, model_.first_position);
        return;
      case TensorUse::grid_positions:
        made = tensor[0].slice(0, model_.first_position);
        return;
      case TensorUse::patch_weights:
        patch_map_ = tensor.to(at::kDouble).flatten(2) * per_channel(&PixelScale::gain);
        made = patch_map_.flatten(1).to(at::kFloat);
        return;
      case TensorUse::patch_biases:
        made = (tensor - (patch_map_ * per_channel(&PixelScale::zero)).sum({1, 2})).to(at::kFloat);
        return;
      case TensorUse::repeated:
      case TensorUse::repeated_answers:
      case TensorUse::repeated_outputs:
        return take_repeated(row, name, tensor, made);
      case TensorUse::unused:
        return;
    }
  }

  const ForeignModel& model_;
  const TensorFile& theirs_;
  const std::string& folder_;
  const torch::OrderedDict<std::string, Tensor> outline_;
  const FixedTokens& fixed_;
  Tensor rows_;       // row of theirs for each token of ours
  Tensor patch_map_;  // [depth, channels, pixels of a patch], from the row patch_weights
  std::set<std::string> used_;
  TensorFile made_;
};

}  // namespace

TensorFile converted(const ForeignModel& model, const TensorFile& theirs, const PairModel& ours,
                     const FixedTokens& fixed, const std::vector<ForeignClass>& other_heads,
                     const std::string& folder, Notes& notes) {
  Conversion conversion(model, theirs, ours, fixed, folder);
  TensorFile made = conversion.all();
  conversion.check_left_over(other_heads, notes);
  return made;
}

std::string shared_tokens(const FixedTokens& fixed) {
  return fmt::format("{}, {}, {}", fixed.rows[Vocabulary::padding], fixed.rows[Vocabulary::bos],
                     fixed.rows[Vocabulary::eos]);
}

Tensor with_fixed_rows(const Tensor& theirs, const std::vector<int64_t>& rows) {
  return at::cat({theirs.index_select(0, at::tensor(rows, at::kLong)), theirs});
}

void rename_norms(TensorFile& theirs) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}};
  for (const auto& [older, newer] : names)
    for (auto each = theirs.tensors.begin(); each != theirs.tensors.end();) {
      auto next = std::next(each);
      if (each->first.ends_with(older)) {
        auto node = theirs.tensors.extract(each);
        node.key().replace(node.key().size() - older.size(), older.size(), newer);
        theirs.tensors.insert(std::move(node));
      }
      each = next;
    }
}

}  // namespace attend::internal
