#include "attend/models/initial_weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "attend/data/node_graph.h"
#include "attend/files/safetensors.h"
#include "attend/nn/without_storage.h"

namespace attend {
namespace {

using at::Tensor;

// Tokens that two vocabularies share: ids in the new vocabulary and in the other.
struct SharedTokens {
  int64_t size_here = 0, size_there = 0;
  std::vector<int64_t> here = {}, there = {};

  bool are_all() const {
    return size_here == size_there && std::ssize(here) == size_here && here == there;
  }
};

SharedTokens shared_tokens(const Vocabulary& here, const Vocabulary& there) {
  SharedTokens shared = {.size_here = here.size(), .size_there = there.size()};
  for (int64_t id = 0; id < here.size(); ++id) {
    const int64_t other = id <= Vocabulary::unknown ? id : there.id(here.token(id));
    if (id > Vocabulary::unknown && other == Vocabulary::unknown) continue;
    shared.here.push_back(id);
    shared.there.push_back(other);
  }
  return shared;
}

// Node features have numbers instead of names.
SharedTokens shared_features(const NodeGraph* here, const NodeGraph* there) {
  if (here == nullptr || there == nullptr) return {};
  SharedTokens shared = {.size_here = here->feature_count(), .size_there = there->feature_count()};
  shared.here.resize(static_cast<size_t>(std::min(shared.size_here, shared.size_there)));
  std::iota(shared.here.begin(), shared.here.end(), int64_t{0});
  shared.there = shared.here;
  return shared;
}

// A copy of the graph with one more feature, at its last node.
std::shared_ptr<const NodeGraph> with_another_feature(const NodeGraph& graph) {
  auto more = std::make_shared<NodeGraph>(graph);
  more->feature_offsets = graph.feature_offsets.clone();
  more->feature_offsets[-1].add_(1);
  more->features = at::cat({graph.features, at::tensor({graph.feature_count()}, at::kLong)});
  more->feature_values = at::cat({graph.feature_values, at::zeros({1})});
  return more;
}

// Shapes of the network with more tokens, or with another graph.
torch::OrderedDict<std::string, Tensor> grown(
    const PairModel& model, int64_t more_source, int64_t more_target,
    const std::shared_ptr<const NodeGraph>& graph = nullptr) {
  const WithoutStorage without_storage;
  SourceShape source = model.source_shape().grown(more_source);
  if (graph != nullptr) source = NodeForm{source.tokens(), graph};
  TargetShape target = model.target_shape();
  if (!target.is_number()) target.tokens += more_target;
  return model.config.chosen().make_network(source, target)->named_parameters();
}

class VocabularyAxes {
 public:
  VocabularyAxes(const PairModel& model, const PairModel& other)
      : is_one_(model.has_one_vocabulary()),
        with_source_(grown(model, 1, is_one_ ? 1 : 0)),
        with_target_(is_one_ ? with_source_ : grown(model, 0, 1)),
        with_feature_(model.graph == nullptr
                          ? with_source_
                          : grown(model, 0, 0, with_another_feature(*model.graph))),
        source_(shared_tokens(model.source_vocabulary, other.source_vocabulary)),
        target_(shared_tokens(model.target_vocabulary, other.target_vocabulary)),
        features_(shared_features(model.graph.get(), other.graph.get())) {}

  // Null if the axis does not count tokens, or if both models have the same tokens at the same
  // indices. The parameter is then copied as a whole.
  const SharedTokens* tokens_of(const std::string& name, const Tensor& parameter,
                                int64_t axis) const {
    const SharedTokens* tokens = nullptr;
    if (with_source_[name].size(axis) != parameter.size(axis))
      tokens = &source_;
    else if (with_target_[name].size(axis) != parameter.size(axis))
      tokens = &target_;
    else if (with_feature_[name].size(axis) != parameter.size(axis))
      tokens = &features_;
    return tokens == nullptr || tokens->are_all() ? nullptr : tokens;
  }

 private:
  const bool is_one_;
  const torch::OrderedDict<std::string, Tensor> with_source_, with_target_, with_feature_;
  const SharedTokens source_, target_, features_;
};

// Rows of shared tokens to copy, along one axis of a parameter.
struct CopiedRows {
  int64_t axis = -1;  // -1: copy the whole parameter
  Tensor here, there;
};

// Returns false if the stored tensor does not fit.
bool find_rows(const VocabularyAxes& axes, const std::string& name, const Tensor& parameter,
               const Tensor& stored, CopiedRows& rows) {
  if (stored.dim() != parameter.dim() || stored.scalar_type() != parameter.scalar_type())
    return false;
  for (int64_t axis = 0; axis < stored.dim(); ++axis) {
    const SharedTokens* tokens = axes.tokens_of(name, parameter, axis);
    if (tokens == nullptr && stored.size(axis) != parameter.size(axis)) return false;
    if (tokens == nullptr) continue;
    // A network may omit the first tokens, for example tokens that are not labels.
    const int64_t left_out = tokens->size_here - parameter.size(axis);
    if (rows.axis >= 0 || left_out < 0 || tokens->size_there - stored.size(axis) != left_out)
      return false;
    std::vector<int64_t> here, there;
    for (size_t i = 0; i < tokens->here.size(); ++i) {
      if (tokens->here[i] < left_out) continue;
      here.push_back(tokens->here[i] - left_out);
      there.push_back(tokens->there[i] - left_out);
    }
    if (here.empty()) return false;
    rows = {axis, at::tensor(here, at::kLong), at::tensor(there, at::kLong)};
  }
  return true;
}

}  // namespace

int64_t load_initial_weights(const PairModel& model, const PairModel& other,
                             const std::string& path) {
  const TensorFile file = read_safetensors(path);
  const VocabularyAxes axes(model, other);
  const at::NoGradGuard no_gradient;
  int64_t count = 0;
  for (auto& item : model.network->named_parameters()) {
    const auto found = file.tensors.find(item.key());
    CopiedRows rows;
    if (found == file.tensors.end() ||
        !find_rows(axes, item.key(), item.value(), found->second, rows))
      continue;
    if (rows.axis < 0)
      item.value().copy_(found->second);
    else
      item.value().index_copy_(rows.axis, rows.here,
                               found->second.index_select(rows.axis, rows.there));
    ++count;
  }
  return count;
}

}  // namespace attend
