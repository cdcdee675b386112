#include "attend/nn/multi_head_attention.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/nn/choice_parameters.h"
#include "attend/nn/positions.h"
#include "attend/nn/selective_bias.h"
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

// Depth of a group's queries and keys.
int64_t query_depth_of(const HeadGroup& group, int64_t head_depth) {
  return group.latent_depth > 0 ? head_depth + group.rotary_depth : head_depth;
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

Tensor rotated(const Tensor& x, const Runs& runs, const Rotation& rotation) {
  return by_runs(x, runs, [&rotation](const Tensor& part, int64_t first) {
    return rotate(part, first, rotation);
  });
}

// Number of last columns of the queries that are rotated; latent heads rotate a part of them.
int64_t rotary_depth_of(const HeadGroup& group, int64_t query_depth) {
  return group.latent_depth > 0 ? group.rotary_depth : group.rotary ? query_depth : 0;
}

Tensor with_last_rotated(const Tensor& x, int64_t count, const Runs& runs,
                         const Rotation& rotation) {
  const int64_t kept = x.size(3) - count;
  if (kept == 0) return rotated(x, runs, rotation);
  return at::cat({x.narrow(3, 0, kept), rotated(x.narrow(3, kept, count), runs, rotation)}, 3);
}

// Keys are mapped once for all later queries. Linear attention maps them itself, because it
// exponentiates features relative to the largest one.
bool maps_early(const LearnedAttention& spec) {
  return !Normaliser(spec.choices().normaliser).row().running_sums && !needs_scale(spec.choices());
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

// Their sigmoid f = 2^(-1 / tokens) is near 1: it forgets half of a key after 32 to 1,024 tokens,
// in equal ratios from head to head.
Tensor initial_gates(int64_t heads) {
  const Tensor share = at::arange(heads, at::kDouble) / std::max<double>(1, double(heads - 1));
  const Tensor tokens = (5 + 5 * share).exp2();
  return -(std::log(2.0) / tokens).expm1().log().to(at::kFloat);
}

// [B, heads, T, 1]. Long sums of gates need more digits than products of bfloat16 have.
Tensor gates_of(LinearImpl& map, const Tensor& source, Pass pass) {
  if (pass.sequence != nullptr)
    fail(
        "[multi-head attention] the gates of a bias are summed over all positions, and processes "
        "share the sequence; take another bias, such as alibi");
  pass.bfloat16 = false;
  return pass.watched(WatchedVectors::bias, map.forward(source, pass).transpose(1, 2).unsqueeze(3));
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
    : head_depth_(head_depth_of(config)),
      source_depth_(config.source_depth == 0 ? config.depth : config.source_depth),
      dropout_(config.dropout) {
  AttentionSizes sizes;
  sizes.attention_depth = config.attention_depth == 0 ? head_depth_ : config.attention_depth;
  sizes.keys = config.keys;
  sizes.given_vectors = config.distances != nullptr;
  int64_t heads = 0, key_heads = 0, queries = 0;
  groups_.reserve(config.groups.size());
  for (const HeadGroup& group : config.groups) {
    check_head_group(group, head_depth_, config.groups.size());
    sizes.query_depth = sizes.key_depth = query_depth_of(group, head_depth_);
    queries += group.heads * sizes.query_depth;
    const size_t number = groups_.size();
    std::shared_ptr<const LearnedAttention> owner;
    if (config.bias_owner != nullptr) owner = config.bias_owner->groups_.at(number).spec;
    auto spec = register_module(
        "group" + std::to_string(number),
        std::make_shared<LearnedAttention>(group.choices, sizes, group.heads, std::move(owner)));
    groups_.push_back({.config = group,
                       .first_head = heads,
                       .first_key_head = key_heads,
                       .spec = std::move(spec)});
    heads += group.heads;
    key_heads += group.key_head_count();
  }
  const auto linear = [&](const std::string& name, int64_t from, int64_t to) {
    return register_module(name, xavier_linear(from, to));
  };
  query_ = linear("query", config.depth, queries);
  if (config.groups[0].latent_depth == 0) {
    key_ = linear("key", source_depth_, key_heads * head_depth_);
    value_ = linear("value", source_depth_, key_heads * head_depth_);
  }
  output_ = linear("output", heads * head_depth_, config.depth);
  make_forms(config);
  make_distances(config);
  for (Group& group : groups_) {
    if (!group.spec->reads_source()) continue;
    group.key_gates = linear("gates" + std::to_string(&group - groups_.data()), source_depth_,
                             group.config.heads);
    const torch::NoGradGuard no_gradients;
    group.key_gates->bias.copy_(initial_gates(group.config.heads));
  }
  if (config.neighbour_kinds == 0) return;
  if (is_positional())
    fail(
        "[multi-head attention] heads depend on positions, and neighbours lack them; take scope "
        "all, no bias of positions (as model.bias = none) and no rotation");
  neighbour_bias_ =
      register_parameter("neighbour_bias", torch::zeros({config.neighbour_kinds, heads}));
}

void MultiHeadAttention::make_forms(const MultiHeadConfig& config) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    const std::string number = std::to_string(i);
    if (group.config.differential)
      group.difference = register_module(
          "difference" + number, std::make_shared<HeadDifference>(head_depth_, config.layer));
    if (group.config.latent_depth > 0)
      group.latent = register_module(
          "latent" + number,
          std::make_shared<LatentHeads>(LatentSizes{.source_depth = source_depth_,
                                                    .heads = group.config.heads,
                                                    .head_depth = head_depth_,
                                                    .latent_depth = group.config.latent_depth,
                                                    .rotary_depth = group.config.rotary_depth}));
    if (group.config.branches.block > 0)
      group.branches = register_module(
          "branches" + number, std::make_shared<SparseBranches>(group.config.branches, config.depth,
                                                                group.config.heads));
    if (group.config.indexer.keys > 0)
      group.indexer = register_module(
          "indexer" + number,
          std::make_shared<KeyIndexer>(group.config.indexer, config.depth, source_depth_));
    if (group.config.memory_segment > 0)
      group.memory = register_module(
          "memory" + number,
          std::make_shared<SegmentMemory>(group.config.memory_segment, group.config.heads));
    if (group.config.mix.queries > 0)
      group.mixer = register_module(
          "mixer" + number, std::make_shared<ScoreMixer>(group.config.mix, group.config.heads));
    if (group.config.gated)
      group.gate = register_module("gate" + number,
                                   xavier_linear(config.depth, group.config.heads * head_depth_));
  }
}

bool MultiHeadAttention::keeps_keys() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.memory == nullptr; });
}

void MultiHeadAttention::make_distances(const MultiHeadConfig& config) {
  distances_ = config.distances;
  if (!distances_) return;
  bool of_queries = false, of_keys = false;
  int64_t heads = 0;
  for (const HeadGroup& group : config.groups) {
    heads += group.heads;
    if (group.latent_depth > 0 || group.key_head_count() != group.heads)
      fail(
          "[multi-head attention] {} heads with {} heads of keys map vectors of distances; take as "
          "many heads of keys, and no latent depth",
          group.heads, group.key_head_count());
    for (const BiasChoice& bias : parse_biases(group.choices.bias)) {
      of_queries |= bias.row->reads_queries;
      of_keys |= bias.row->reads_keys;
      if (bias.row->compares() && table_axes(bias)[0] != distances_->rows())
        fail(
            "[multi-head attention] bias {} reads {} vectors of distances, and all biases share "
            "{}; take equal numbers",
            bias.row->name, table_axes(bias)[0], distances_->rows());
    }
  }
  if (!config.maps_distances) return;
  const auto linear = [&] { return xavier_linear(config.depth, heads * head_depth_); };
  if (of_queries) distance_key_ = register_module("distance_key", linear());
  if (of_keys) distance_query_ = register_module("distance_query", linear());
}

std::map<BiasKind, Tensor> MultiHeadAttention::distance_vectors(const Group& group,
                                                                const Pass& pass) {
  std::map<BiasKind, Tensor> all;
  const Tensor vectors = distances_->vectors(pass);
  for (const BiasChoice& bias : parse_biases(group.config.choices.bias)) {
    if (!bias.row->compares()) continue;
    Linear& own = bias.row->reads_queries ? distance_key_ : distance_query_;
    Linear& map = own ? own : bias.row->reads_queries ? key_ : query_;
    all[bias.row->kind] = split_heads(map->forward(vectors, pass), head_depth_)[0].narrow(
        0, group.first_head, group.config.heads);
  }
  return all;
}

bool MultiHeadAttention::is_positional() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return group.config.rotary || group.config.rotary_depth > 0 || group.spec->is_positional();
  });
}

// Appends keys and values [B, key heads, T, .] of new positions to the state of a group.
void MultiHeadAttention::append_group(const Group& group, const Tensor& key, const Tensor& value,
                                      const Runs& positions, MultiHeadState& state) {
  const int64_t key_heads = group.config.key_head_count();
  Tensor keys = group.config.rotary ? rotated(key, positions, group.config.rotation) : key;
  Tensor values = value;
  if (group.difference)
    values = value.transpose(1, 2).unflatten(2, {key_heads / 2, 2}).flatten(3).transpose(1, 2);
  const Score score = group.spec->score();
  // Keys that are mapped per head can no longer be shared.
  if (const int64_t sharing = group.config.heads / key_heads; score.heads() && sharing != 1) {
    keys = keys.repeat_interleave(sharing, 1);
    values = values.repeat_interleave(sharing, 1);
  }
  MultiHeadState::Group& held = state.groups_[static_cast<size_t>(&group - groups_.data())];
  if (maps_early(*group.spec)) keys = score.map_key(keys);
  const int64_t length = state.keys_ - held.first;
  held.keys = appended(held.keys, keys, length);
  held.values = appended(held.values, values, length);
  if (group.memory && group.config.rotary) held.plain_keys = appended(held.plain_keys, key, length);
}

void MultiHeadAttention::append(const Tensor& source, MultiHeadState& state, const Pass& pass) {
  check_sequence(source, "source", source_depth_);
  if (!state.groups_.empty() && state.groups_[0].keys.size(0) != source.size(0))
    fail("[multi-head attention] x has batch {}, the state {}; they must match", source.size(0),
         state.groups_[0].keys.size(0));
  const Runs positions = pass.sequence != nullptr ? pass.sequence->key_runs(pass.site)
                                                  : Runs{{state.keys_, source.size(1)}};
  state.groups_.resize(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i)
    if (Group& group = groups_[i]; group.key_gates)
      state.groups_[i].key_gates = appended(state.groups_[i].key_gates,
                                            gates_of(*group.key_gates, source, pass), state.keys_);
  if (const Group& group = groups_[0]; group.latent) {
    Tensor kept = group.latent->compressed(source, pass);
    if (const int64_t depth = group.config.rotary_depth; depth > 0)
      kept = with_last_rotated(kept, depth, positions, group.config.rotation);
    state.groups_[0].keys = appended(state.groups_[0].keys, kept, state.keys_);
  } else {
    const Tensor keys = split_heads(key_->forward(source, pass), head_depth_);
    const Tensor values = split_heads(value_->forward(source, pass), head_depth_);
    for (const Group& each : groups_) {
      const int64_t key_heads = each.config.key_head_count();
      if (each.indexer) {
        Tensor& held = state.groups_[static_cast<size_t>(&each - groups_.data())].index_keys;
        held = appended(held, each.indexer->keys(source, pass), state.keys_);
      }
      append_group(each, keys.narrow(1, each.first_key_head, key_heads),
                   values.narrow(1, each.first_key_head, key_heads), positions, state);
    }
  }
  state.keys_ += source.size(1);
}

Bias MultiHeadAttention::neighbour_bias(const Group& group, const Neighbours& neighbours) const {
  const Tensor own = neighbour_bias_.narrow(1, group.first_head, group.config.heads);
  return edge_bias(at::embedding(own, neighbours.kinds).permute({0, 2, 1}));
}

Tensor MultiHeadAttention::latent_contexts(const Group& group, const Tensor& query,
                                           const Tensor& kept, const AttentionSpec& spec,
                                           const Pass& pass) const {
  const std::vector<BiasChoice> biases = parse_biases(group.config.choices.bias);
  const bool compares = std::any_of(biases.begin(), biases.end(),
                                    [](const BiasChoice& bias) { return bias.row->compares(); });
  if (pass.watch != nullptr || compares || !group.latent->absorbs(query.size(2))) {
    const auto [key, value] = group.latent->expanded(kept, pass);
    return pass.attention(query, key, value, spec, output_->weight).context;
  }
  AttentionSpec absorbed = spec;
  absorbed.score = Score("dot");
  const double scale = spec.score.scale(query.size(3));
  const Tensor latent = kept.narrow(3, 0, group.config.latent_depth);
  return group.latent->absorbed_contexts(
      pass.attention(group.latent->absorbed_queries(query) * scale, kept, latent, absorbed)
          .context);
}

Tensor MultiHeadAttention::indexed_contexts(const Group& group, const AttentionCall& given,
                                            const MultiHeadState& state, const HeadCall& call) {
  const Pass& pass = call.pass;
  const size_t number = static_cast<size_t>(&group - groups_.data());
  const Tensor index_keys = state.groups_[number].index_keys.narrow(2, 0, state.keys_);
  const Tensor scores = group.indexer->scores(call.input, index_keys, pass);
  AttentionSpec spec = given.spec;
  spec.scope = group.indexer->chosen(scores, spec.scope);
  const auto [context, lse] =
      pass.attention(given.query, given.key, given.value, spec, given.output);
  if (pass.penalties != nullptr) {
    const Tensor weights = [&] {
      const at::NoGradGuard no_gradient;
      return attention_weights(given.query, given.key, lse, spec);
    }();
    pass.penalties->push_back(
        KeyIndexer::divergence(scores, spec.scope, weights, state.key_lengths_));
  }
  return context;
}

Tensor MultiHeadAttention::selective_contexts(const AttentionCall& given,
                                              MultiHeadState::Group& held, int64_t offset,
                                              const HeadCall& call) {
  const SelectiveBias made =
      selective_bias(given.query.narrow(1, 0, 1), given.key.narrow(1, 0, 1), given.spec.score,
                     given.spec.scope, offset, with_keys(held.selected, given.key.size(2)));
  if (call.others_follow) held.selected = made.total;
  AttentionSpec spec = given.spec;
  spec.bias = spec.bias + dense_bias(call.pass.watched(WatchedVectors::bias, made.bias));
  return call.pass.attention(given.query, given.key, given.value, spec, given.output).context;
}

Tensor MultiHeadAttention::memory_contexts(const Group& group, const AttentionCall& given,
                                           const Tensor& query, MultiHeadState& state,
                                           const HeadCall& call) {
  MultiHeadState::Group& held = state.groups_[0];
  const int64_t length = state.keys_ - held.first, offset = state.queries_ - held.first;
  const Tensor plain = held.plain_keys.defined() ? held.plain_keys.narrow(2, 0, length) : given.key;
  MemorySums sums = held.sums;
  const Tensor contexts =
      group.memory->attend({given.query, given.key, given.value, query, plain, offset}, given.spec,
                           sums, given.output, call.pass);
  // A watch sees the weights of all keys, so they stay.
  if (!call.others_follow || call.pass.watch != nullptr) return contexts;
  const int64_t segment = group.memory->segment();
  const int64_t left = (offset + query.size(2) - 1) / segment * segment;
  held.sums = sums;
  held.first += left;
  for (Tensor* each : {&held.keys, &held.values, &held.plain_keys})
    if (each->defined()) *each = each->slice(2, left);
  return contexts;
}

Tensor MultiHeadAttention::mixed_contexts(const Group& group, const AttentionCall& given,
                                          MultiHeadState& state, const HeadCall& call) const {
  MultiHeadState::Group& held = state.groups_[static_cast<size_t>(&group - groups_.data())];
  const int64_t queries = given.query.size(2);
  const Tensor all = held.queries.defined() ? at::cat({held.queries, given.query}, 2) : given.query;
  const int64_t before = all.size(2) - queries;
  AttentionSpec spec = given.spec;
  spec.scope = group.spec
                   ->spec(all, {.offset = state.queries_ - before,
                                .keys = state.keys_,
                                .key_lengths = state.key_lengths_})
                   .scope;
  if (call.others_follow)
    held.queries = all.slice(2, std::max<int64_t>(0, all.size(2) - group.mixer->rows_before()));
  return group.mixer->attend(all, queries, given.key, given.value, spec, given.output, call.pass);
}

Tensor MultiHeadAttention::contexts(const Group& group, const Tensor& query, MultiHeadState& state,
                                    const HeadCall& call) {
  const Pass& pass = call.pass;
  MultiHeadState::Group& held = state.groups_[static_cast<size_t>(&group - groups_.data())];
  Placement placement = {
      .offset = state.queries_, .keys = state.keys_, .key_lengths = state.key_lengths_};
  if (pass.sequence != nullptr) {
    placement.keys = length_of(pass.sequence->attended(pass.site).keys);
    placement.queries = pass.sequence->length();
  }
  placement.past = {with_keys(held.past.previous, state.keys_),
                    with_keys(held.past.total, state.keys_)};
  if (group.key_gates) placement.key_numbers = held.key_gates.narrow(2, 0, state.keys_).squeeze(3);
  if (distances_) placement.vectors = distance_vectors(group, pass);
  placement.seed = group.spec->draws() ? pass.draw_seed() : 0;
  AttentionSpec spec = group.spec->spec(query, placement);
  if (call.neighbours != nullptr) {
    spec.scope = call.neighbours->scope;
    spec.bias = spec.bias + neighbour_bias(group, *call.neighbours);
  }
  Tensor asking = query;
  if (const int64_t turned = rotary_depth_of(group.config, query.size(3)); turned > 0)
    asking = with_last_rotated(query, turned, positions_here(pass, state.queries_, query.size(2)),
                               group.config.rotation);
  if (maps_early(*group.spec) && !group.latent) {
    asking = spec.score.map_query(asking);
    spec.score = spec.score.mapped();
  }
  if (pass.generator && dropout_ > 0) spec.dropout = {dropout_, pass.draw_seed()};
  const Tensor key = held.keys.narrow(2, 0, state.keys_ - held.first);
  if (group.latent) return latent_contexts(group, asking, key, spec, pass);
  const Tensor value = held.values.narrow(2, 0, state.keys_ - held.first);
  const Tensor output =
      output_->weight.narrow(1, group.first_head * head_depth_, group.config.heads * head_depth_);
  if (group.difference) return group.difference->attend(asking, key, value, spec, output, pass);
  if (group.branches)
    return group.branches->attend({asking, key, value, state.queries_}, spec, call.input, output,
                                  pass);
  if (group.indexer)
    return indexed_contexts(group, {asking, key, value, spec, output}, state, call);
  if (group.memory)
    return memory_contexts(group, {asking, key, value, spec, output}, query, state, call);
  if (group.mixer) return mixed_contexts(group, {asking, key, value, spec, output}, state, call);
  if (group.config.selective)
    return selective_contexts({asking, key, value, spec, output}, held, state.queries_, call);
  const auto [context, lse] = pass.attention(asking, key, value, spec, output);
  if (call.others_follow && group.spec->looks_back())
    held.past = past_after(spec.past, pass.weights(asking, key, lse, spec));
  return context;
}

Tensor MultiHeadAttention::joined(Group& group, const Tensor& contexts, const Tensor& input,
                                  const Pass& pass) {
  const Tensor whole = contexts.transpose(1, 2).flatten(2);
  Tensor factors;
  if (group.difference)
    factors = group.difference->norm_factors(contexts).transpose(1, 2).flatten(2);
  if (group.gate) {
    const Tensor gate = at::sigmoid(group.gate->forward(input, pass));
    factors = factors.defined() ? factors * gate : gate;
  }
  return factors.defined() ? whole * pass.watched(WatchedVectors::context_gate, factors) : whole;
}

Tensor MultiHeadAttention::attend(const Tensor& query, MultiHeadState& state, bool others_follow,
                                  const Pass& pass, const Neighbours* neighbours) {
  check_sequence(query, "query", query_->options.in_features());
  if (state.groups_.empty())
    fail("[multi-head attention] the state holds nothing to read; prepare() a source");
  const Tensor queries = query_->forward(query, pass);
  std::vector<Tensor> parts;
  parts.reserve(groups_.size());
  int64_t first = 0;
  for (Group& group : groups_) {
    const int64_t depth = query_depth_of(group.config, head_depth_);
    const Tensor own = split_heads(queries.narrow(2, first, group.config.heads * depth), depth);
    first += group.config.heads * depth;
    parts.push_back(joined(
        group, contexts(group, own, state, {query, others_follow, neighbours, pass}), query, pass));
  }
  if (others_follow) state.queries_ += query.size(1);
  return output_->forward(parts.size() == 1 ? parts[0] : at::cat(parts, 2), pass);
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
