#include "attend/nn/multi_head_attention.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/nn/positions.h"
#include "attend/nn/shared_sequence.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t least_room = 16;  // initial room for keys in a growing state

void check_sequence(const Tensor& x, const char* name, int64_t depth) {
  if (!x.defined() || x.dim() != 3 || x.size(2) != depth)
    fail("[multi-head attention] {} has shape {}; it must be [batch, positions, {}]", name,
         x.defined() ? shape_of(x) : "undefined", depth);
}

int64_t key_heads_of(const HeadGroup& group) {
  return group.key_heads == 0 ? group.heads : group.key_heads;
}

void check_group(const HeadGroup& group, int64_t head_depth) {
  if (group.heads < 1 || group.key_heads < 0 || group.heads % key_heads_of(group) != 0)
    fail(
        "[multi-head attention] {} heads share {} heads of keys; the second must divide the first "
        "and be 1 or more",
        group.heads, group.key_heads);
  if (group.rotary && head_depth % 2 != 0)
    fail("[multi-head attention] heads have depth {}; rotary rotates pairs, make it even",
         head_depth);
}

int64_t head_depth_of(const MultiHeadConfig& config) {
  if (config.groups.empty()) fail("[multi-head attention] got no heads; give a group");
  if (config.depth < 1 || config.source_depth < 0 || config.head_depth < 0)
    fail(
        "[multi-head attention] depth is {}, source_depth {}, head_depth {}; the first must be 1 "
        "or more, the others positive or 0",
        config.depth, config.source_depth, config.head_depth);
  if (config.head_depth > 0) return config.head_depth;
  int64_t heads = 0;
  for (const HeadGroup& group : config.groups) heads += std::max<int64_t>(group.heads, 0);
  if (heads == 0 || config.depth % heads != 0)
    fail("[multi-head attention] depth {} does not divide among {} heads; set head_depth",
         config.depth, heads);
  return config.depth / heads;
}

// [B, T, heads depth] -> [B, heads, T, depth].
Tensor split_heads(const Tensor& x, int64_t depth) {
  return x.unflatten(2, {x.size(2) / depth, depth}).transpose(1, 2);
}

Tensor rotated(const Tensor& x, const Runs& runs, double base) {
  return by_runs(x, runs,
                 [base](const Tensor& part, int64_t first) { return rotate(part, first, base); });
}

// Keys are mapped once for all later queries. Linear attention maps them itself, because it
// exponentiates features relative to the largest one.
bool maps_early(const LearnedAttention& spec) {
  return !Normaliser(spec.choices().normaliser).row().running_sums;
}

// Appends `added` after the first `length` keys of `held`. Writes in place if there is room and no
// gradients are recorded.
Tensor appended(const Tensor& held, const Tensor& added, int64_t length) {
  if (!held.defined()) return added;
  if (at::GradMode::is_enabled() && (held.requires_grad() || added.requires_grad()))
    return at::cat({held.narrow(2, 0, length), added}, 2);
  const int64_t wanted = length + added.size(2);
  Tensor roomy = held;
  if (wanted > held.size(2)) {
    std::vector<int64_t> shape = held.sizes().vec();
    shape[2] = std::max({least_room, wanted, 2 * held.size(2)});
    roomy = held.new_empty(shape);
    roomy.narrow(2, 0, length).copy_(held.narrow(2, 0, length));
  }
  roomy.narrow(2, length, added.size(2)).copy_(added);
  return roomy;
}

// New keys have weight 0 so far.
Tensor with_keys(const Tensor& past, int64_t keys) {
  return past.defined() ? at::constant_pad_nd(past, {0, keys - past.size(-1)}) : past;
}

PastWeights past_after(PastWeights past, const Tensor& weights) {
  for (int64_t row = 0; row < weights.size(2); ++row) past = after(past, weights.select(2, row));
  return past;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const MultiHeadConfig& config)
    : head_depth_(head_depth_of(config)), dropout_(config.dropout) {
  AttentionSizes sizes;
  sizes.query_depth = sizes.key_depth = head_depth_;
  sizes.attention_depth = config.attention_depth == 0 ? head_depth_ : config.attention_depth;
  sizes.keys = config.keys;
  int64_t heads = 0, key_heads = 0;
  groups_.reserve(config.groups.size());
  for (const HeadGroup& group : config.groups) {
    check_group(group, head_depth_);
    auto spec =
        register_module("group" + std::to_string(groups_.size()),
                        std::make_shared<LearnedAttention>(group.choices, sizes, group.heads));
    groups_.push_back({group, heads, key_heads, std::move(spec)});
    heads += group.heads;
    key_heads += key_heads_of(group);
  }
  const int64_t source_depth = config.source_depth == 0 ? config.depth : config.source_depth;
  const auto linear = [&](const char* name, int64_t from, int64_t to) {
    auto layer = register_module(name, Linear(from, to));
    torch::nn::init::xavier_uniform_(layer->weight);
    torch::nn::init::zeros_(layer->bias);
    return layer;
  };
  query_ = linear("query", config.depth, heads * head_depth_);
  key_ = linear("key", source_depth, key_heads * head_depth_);
  value_ = linear("value", source_depth, key_heads * head_depth_);
  output_ = linear("output", heads * head_depth_, config.depth);
  if (config.neighbour_kinds == 0) return;
  if (is_positional())
    fail(
        "[multi-head attention] heads depend on positions, and neighbours lack them; take scope "
        "all, no bias of positions (as model.bias = none) and no rotation");
  neighbour_bias_ =
      register_parameter("neighbour_bias", torch::zeros({config.neighbour_kinds, heads}));
}

bool MultiHeadAttention::is_positional() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return group.config.rotary || group.spec->is_positional();
  });
}

void MultiHeadAttention::append(const Tensor& source, MultiHeadState& state, const Pass& pass) {
  check_sequence(source, "source", key_->options.in_features());
  if (!state.groups_.empty() && state.groups_[0].keys.size(0) != source.size(0))
    fail("[multi-head attention] x has batch {}, the state {}; they must match", source.size(0),
         state.groups_[0].keys.size(0));
  const Tensor keys = split_heads(key_->forward(source, pass), head_depth_);
  const Tensor values = split_heads(value_->forward(source, pass), head_depth_);
  const Runs positions = pass.sequence != nullptr ? pass.sequence->key_runs(pass.site)
                                                  : Runs{{state.keys_, source.size(1)}};
  state.groups_.resize(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    const int64_t key_heads = key_heads_of(group.config);
    Tensor key = keys.narrow(1, group.first_key_head, key_heads);
    Tensor value = values.narrow(1, group.first_key_head, key_heads);
    if (group.config.rotary) key = rotated(key, positions, group.config.rotary_base);
    const Score score = group.spec->score();
    // Keys that are mapped per head can no longer be shared.
    if (score.heads() && key_heads != group.config.heads) {
      key = key.repeat_interleave(group.config.heads / key_heads, 1);
      value = value.repeat_interleave(group.config.heads / key_heads, 1);
    }
    MultiHeadState::Group& held = state.groups_[i];
    if (maps_early(*group.spec)) key = score.map_key(key);
    held.keys = appended(held.keys, key, state.keys_);
    held.values = appended(held.values, value, state.keys_);
  }
  state.keys_ += source.size(1);
}

Bias MultiHeadAttention::neighbour_bias(const Group& group, const Neighbours& neighbours) const {
  const Tensor own = neighbour_bias_.narrow(1, group.first_head, group.config.heads);
  return edge_bias(at::embedding(own, neighbours.kinds).permute({0, 2, 1}));
}

Tensor MultiHeadAttention::attend(const Tensor& query, MultiHeadState& state, bool others_follow,
                                  const Pass& pass, const Neighbours* neighbours) {
  check_sequence(query, "query", query_->options.in_features());
  if (state.groups_.empty())
    fail("[multi-head attention] the state holds nothing to read; prepare() a source");
  const Tensor queries = split_heads(query_->forward(query, pass), head_depth_);
  Placement placement = {
      .offset = state.queries_, .keys = state.keys_, .key_lengths = state.key_lengths_};
  if (pass.sequence != nullptr) {
    placement.keys = length_of(pass.sequence->attended(pass.site).keys);
    placement.queries = pass.sequence->length();
  }
  std::vector<Tensor> contexts;
  contexts.reserve(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    MultiHeadState::Group& held = state.groups_[i];
    const Tensor own = queries.narrow(1, group.first_head, group.config.heads);
    placement.past = {with_keys(held.past.previous, state.keys_),
                      with_keys(held.past.total, state.keys_)};
    placement.seed = group.spec->draws() ? pass.draw_seed() : 0;
    AttentionSpec spec = group.spec->spec(own, placement);
    if (neighbours != nullptr) {
      spec.scope = neighbours->scope;
      spec.bias = spec.bias + neighbour_bias(group, *neighbours);
    }
    Tensor asking = own;
    if (group.config.rotary)
      asking = rotated(own, positions_here(pass, state.queries_, query.size(1)),
                       group.config.rotary_base);
    if (maps_early(*group.spec)) {
      asking = spec.score.map_query(asking);
      spec.score = spec.score.mapped();
    }
    if (pass.generator && dropout_ > 0) spec.dropout = {dropout_, pass.draw_seed()};
    const Tensor key = held.keys.narrow(2, 0, state.keys_);
    const Tensor value = held.values.narrow(2, 0, state.keys_);
    const auto [context, lse] =
        pass.attention(asking, key, value, spec,
                       output_->weight.narrow(1, group.first_head * head_depth_,
                                              group.config.heads * head_depth_));
    contexts.push_back(context);
    if (others_follow && group.spec->looks_back())
      held.past = past_after(spec.past, pass.weights(asking, key, lse, spec));
  }
  if (others_follow) state.queries_ += query.size(1);
  const Tensor joined = contexts.size() == 1 ? contexts[0] : at::cat(contexts, 1);
  return output_->forward(joined.transpose(1, 2).flatten(2), pass);
}

Tensor MultiHeadAttention::forward(const Tensor& query, const Tensor& source, const Tensor& lengths,
                                   const Pass& pass, const Neighbours* neighbours) {
  MultiHeadState state = prepare(source, lengths, pass);
  return attend(query, state, /*others_follow=*/false, pass, neighbours);
}

MultiHeadState MultiHeadAttention::prepare(const Tensor& source, const Tensor& lengths,
                                           const Pass& pass) {
  MultiHeadState state;
  append(source, state, pass);
  state.key_lengths_ = lengths;
  return state;
}

Tensor MultiHeadAttention::read(const Tensor& query, MultiHeadState& state, const Pass& pass) {
  return attend(query, state, /*others_follow=*/true, pass);
}

Tensor MultiHeadAttention::step(const Tensor& x, MultiHeadState& state, const Pass& pass) {
  if (state.key_lengths_.defined())
    fail(
        "[multi-head attention] the state was prepared with lengths, so nothing can be appended; "
        "begin with an empty one");
  append(x, state, pass);
  return read(x, state, pass);
}

}  // namespace attend
