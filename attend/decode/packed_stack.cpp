#include "attend/decode/packed_stack.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>

#include "attend/base/error.h"
#include "attend/decode/packed_state-inl.h"
#include "attend/decode/packed_tensors-inl.h"
#include "attend/kernels/attention.h"
#include "attend/kernels/helpers.h"
#include "attend/ops/scopes.h"

namespace attend {
namespace {

using at::Tensor;
using kernels::PackedMatrix;

// Heads that read a source have neither rotation nor bias.
bool takes_heads(const std::vector<HeadGroup>& groups, bool itself) {
  if (groups.size() != 1 || !groups[0].is_plain()) return false;
  AttentionChoices choices = groups[0].choices;
  if (itself && PackedBias::takes(choices.bias)) choices.bias.clear();
  if (!itself && groups[0].rotary) return false;
  return score_row(choices.score).compares_vectors() && reads_all_by_softmax(choices, itself);
}

// Heads that read a whole sequence by encode().
bool encodes_heads(const std::vector<HeadGroup>& groups) {
  if (groups.size() != 1 || !groups[0].is_plain()) return false;
  const AttentionChoices& choices = groups[0].choices;
  return score_row(choices.score).compares_vectors() && is_plain_softmax(choices) &&
         PackedBias::takes(choices.bias) && scope_of_windows(choices.scope).has_value() &&
         !is_causal(parse_scope(choices.scope));
}

std::vector<float> numbers(const Tensor& tensor) {
  const Tensor plain = contiguous_numbers(tensor.detach());
  return {pointer_of<const float>(plain), pointer_of<const float>(plain) + plain.numel()};
}

// Lengths of sources x [B, T, depth]; undefined lengths: no padding.
std::vector<int64_t> lengths_or_all(const Tensor& lengths, const Tensor& x) {
  if (!lengths.defined()) return std::vector<int64_t>(static_cast<size_t>(x.size(0)), x.size(1));
  const Tensor plain = contiguous_numbers(lengths.to(at::kCPU, at::kLong));
  return {pointer_of<const int64_t>(plain), pointer_of<const int64_t>(plain) + plain.numel()};
}

// Rows [.., depth] of x [B, T, depth] without the padding, which need not be computed.
Tensor without_padding(const Tensor& x, const std::vector<int64_t>& lengths) {
  std::vector<Tensor> parts;
  for (size_t b = 0; b < lengths.size(); ++b)
    parts.push_back(x[static_cast<int64_t>(b)].narrow(0, 0, lengths[b]));
  return at::cat(parts);
}

// Multiply-adds, or numbers, of a shared part: it takes some 20 microseconds.
constexpr int64_t shared_products = int64_t{1} << 20, shared_numbers = int64_t{1} << 15;

// share_parts() for work that may throw; rethrows the first exception.
template <class Compute>
void share_each(int64_t parts, const Compute& compute) {
  std::exception_ptr failure;
  std::mutex failing;
  kernels::share_parts(parts, [&](int64_t part) {
    try {
      compute(part);
    } catch (...) {
      const std::lock_guard lock(failing);
      if (!failure) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

// Some heads of keys of one of several sequences, which follow each other.
struct HeadPart {
  int64_t first, length;  // rows
  int64_t head, heads;
};

// `depth`: numbers of the queries per head of keys.
std::vector<HeadPart> head_parts(const std::vector<int64_t>& lengths, int64_t heads,
                                 int64_t depth) {
  std::vector<HeadPart> parts;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    const int64_t products = std::max<int64_t>(1, 2 * length * length * depth);
    const int64_t together = std::min(heads, shared_products / products + 1);
    for (int64_t head = 0; head < heads; head += together)
      parts.push_back({first, length, head, std::min(together, heads - head)});
    first += length;
  }
  return parts;
}

}  // namespace

bool PackedStack::takes(const TransformerStack& stack) {
  const TransformerStackConfig& config = stack.config();
  return takes_layers(stack) && config.owners.empty() && config.self_in_turn.empty() &&
         config.first_norm && takes_heads(config.self, /*itself=*/true) &&
         (config.cross.empty() || takes_heads(config.cross, /*itself=*/false));
}

bool PackedStack::takes_layers(const TransformerStack& stack) {
  const TransformerStackConfig& config = stack.config();
  for (const Tensor& each : stack.parameters())
    if (!each.is_cpu() || each.scalar_type() != at::kFloat) return false;
  if (config.experts > 0 || config.depth_block > 0 || config.convolution > 0 ||
      config.inducing_points > 0)
    return false;
  const auto packs = [](const RecurrenceRow* row) {
    return row == nullptr || PackedRecurrence::takes(*row);
  };
  return std::all_of(config.recurrences.begin(), config.recurrences.end(), packs);
}

PackedStack::Norm PackedStack::pack_norm(const Parameters& all, const std::string& name) {
  const Tensor* weight = all.find(name + ".weight");
  if (weight == nullptr) return {};  // the first layer of a stack without first_norm
  Norm norm{numbers(*weight), {}};
  const Tensor* bias = all.find(name + ".bias");  // absent for rms
  norm.bias = bias == nullptr ? std::vector<float>(norm.weight.size(), 0.0F) : numbers(*bias);
  return norm;
}

PackedStack::Heads PackedStack::pack_heads(const Parameters& all, const std::string& name,
                                           const HeadGroup& group, WeightType weights,
                                           bool round_rows) {
  constexpr int64_t whole = 16;  // cached_attention() requires multiples of it
  Heads heads;
  heads.heads = group.heads;
  heads.key_heads = group.key_head_count();
  const auto parameter = [&](const char* part) { return all[name + part]; };
  const int64_t depth = parameter(".query.weight").size(0) / group.heads;
  heads.depth = up_to(depth, whole);
  heads.scale = static_cast<float>(Score(group.choices.score).scale(depth));
  const auto padded = [&](const char* part, int64_t count) {
    return with_padded_parts(parameter(part), count, heads.depth);
  };
  heads.query = packed(padded(".query.weight", heads.heads), padded(".query.bias", heads.heads),
                       weights, round_rows);
  heads.key_value = packed(
      at::cat({padded(".key.weight", heads.key_heads), padded(".value.weight", heads.key_heads)}),
      at::cat({padded(".key.bias", heads.key_heads), padded(".value.bias", heads.key_heads)}),
      weights, round_rows);
  const Tensor output =
      with_padded_parts(parameter(".output.weight").t().contiguous(), heads.heads, heads.depth);
  heads.output = packed(output.t(), parameter(".output.bias"), weights, round_rows);
  if (group.gated)
    heads.gate = packed(padded(".gate0.weight", heads.heads), padded(".gate0.bias", heads.heads),
                        weights, round_rows);
  heads.norm = pack_norm(all, name + "_norm");
  if (group.rotary) heads.rotation = PackedRotation(group.rotation, depth);
  return heads;
}

void PackedStack::pack_self(const Parameters& all, int64_t index, WeightType weights,
                            bool round_rows, Layer& layer) const {
  const std::string name = fmt::format("layer{}_", index);
  const RecurrenceRow* row = config_.recurrence(index);
  if (row == nullptr) {
    const HeadGroup& group = config_.self_of(index)[0];
    layer.self = pack_heads(all, name + "self", group, weights, round_rows);
    if (!config_.self_in_turn.empty())
      layer.self.kind = static_cast<size_t>(index) % config_.self_in_turn.size();
    layer.self.scope = scope_of_windows(group.choices.scope).value_or(kernels::Scope());
    const bool has_own = !config_.shared_bias || layer.cached == 0;
    if (has_own && !group.choices.bias.empty())
      layer.self.bias = PackedBias(group.choices, group.heads,
                                   all[name + "self.query.weight"].size(0) / group.heads,
                                   layer.self.scale, all, name + "self.group0.");
    return;
  }
  layer.recurrence =
      std::make_unique<const PackedRecurrence>(RecurrenceLayerConfig{.row = row,
                                                                     .depth = config_.depth,
                                                                     .heads = config_.self[0].heads,
                                                                     .epsilon = config_.epsilon},
                                               all, name + "recurrence", weights);
  layer.self.norm = pack_norm(all, name + "self_norm");
}

size_t PackedStack::cached_layers() const {
  return static_cast<size_t>(std::count_if(layers_.begin(), layers_.end(), [](const Layer& layer) {
    return layer.recurrence == nullptr;
  }));
}

int64_t PackedStack::cached_width() const {
  for (const Layer& layer : layers_)
    if (layer.recurrence == nullptr) return layer.self.width();
  return 0;
}

PackedStack::PackedStack(const TransformerStack& stack, WeightType weights)
    : config_(stack.config()), cache_type_(cache_type(weights)) {
  if (!takes(stack) && !encodes(stack))
    fail("[packed stack] these layers have no packed form; step the stack itself");
  const Parameters all = stack.named_parameters();
  const bool round_rows = encodes(stack);  // an encoder always has many rows
  for (int64_t i = 0; i < config_.layers; ++i) {
    const int64_t owner = config_.owner(i);
    order_.push_back(owner == i ? layers_.size() : order_[static_cast<size_t>(owner)]);
    if (owner != i) continue;
    const std::string name = fmt::format("layer{}_", i);
    Layer layer;
    layer.cached = cached_layers();
    pack_self(all, i, weights, round_rows, layer);
    if (!config_.cross.empty())
      layer.cross = pack_heads(all, name + "cross", config_.cross[0], weights, round_rows);
    const std::string part = name + "feed_forward";
    const auto map = [&](const std::string& which) {
      return packed(all[which + ".weight"], all[which + ".bias"], weights, round_rows);
    };
    layer.hidden = map(part + ".hidden");
    layer.output = map(part + ".output");
    if (config_.gated) layer.gate = map(part + ".gate");
    layer.feed_forward_norm = pack_norm(all, part + "_norm");
    layers_.push_back(std::move(layer));
  }
  if (!config_.normalise_first) return;
  final_norm_ = pack_norm(all, "norm");
  for (std::vector<float>* each : {&final_norm_.weight, &final_norm_.bias})
    for (float& number : *each) number *= static_cast<float>(config_.output_scale);
}

std::shared_ptr<PackedStack::State> PackedStack::start(const StackSource& source,
                                                       int64_t rows) const {
  auto state = std::make_shared<State>();
  if (config_.cross.empty()) {
    state->count = rows;
    state->groups = {{.count = rows}};
    start_recurrences(*state);
    return state;
  }
  const Tensor vectors = contiguous_numbers(source.vectors.to(at::kFloat));
  const std::vector<int64_t> lengths = lengths_or_all(source.lengths, vectors);
  const Tensor tokens = without_padding(vectors, lengths);
  state->count = vectors.size(0);
  const auto block = std::make_shared<State::Block>(State::make_block(
      cache_type_, layers_.size(), state->count, vectors.size(1), layers_[0].cross.width()));
  for (size_t i = 0; i < layers_.size(); ++i)
    block->keep_sources(i, lengths,
                        keys_and_values(*state, layers_[i].cross, pointer_of<const float>(tokens),
                                        tokens.size(0), tokens.size(1)));
  for (int64_t b = 0; b < state->count; ++b) state->sources.push_back(static_cast<int32_t>(b));
  if (source.lengths.defined()) state->lengths = lengths;
  state->groups = {{.count = state->count, .source = block}};
  start_recurrences(*state);
  return state;
}

void PackedStack::start_recurrences(State& state) const {
  for (const Layer& layer : layers_)
    state.recurrences.push_back(layer.recurrence != nullptr ? layer.recurrence->start(state.count)
                                                            : PackedRecurrence::State());
}

void PackedStack::normalise(const State& state, const Norm& norm, float* out) const {
  kernels::normalise_rows({.rows = state.rows,
                           .depth = config_.depth,
                           .stride = up_to(config_.depth, PackedMatrix::panel),
                           .x = state.x.data(),
                           .weight = norm.weight.data(),
                           .bias = norm.bias.data(),
                           .epsilon = static_cast<float>(config_.epsilon),
                           .centred = config_.norm == NormKind::layer,
                           .out = out});
}

// Adds the sublayer's output to x, normalised before or after.
template <class Sublayer>
void PackedStack::add(State& state, const Norm& norm, const Sublayer& sublayer) const {
  const bool first = config_.normalise_first && !norm.weight.empty();
  if (first) normalise(state, norm, state.normed.data());
  // A sublayer adds to x in place after it has read its input.
  sublayer(first ? state.normed.data() : state.x.data());
  if (!config_.normalise_first) normalise(state, norm, state.x.data());
}

// x += f(in). contexts(to, stride) computes the contexts of the queries.
template <class Contexts>
void PackedStack::attend(State& state, const Heads& heads, const float* in,
                         const Contexts& contexts) const {
  const int64_t stride = up_to(config_.depth, PackedMatrix::panel);
  const int64_t wide = heads.query.padded_columns();
  kernels::packed_products({.rows = state.rows,
                            .matrix = &heads.query,
                            .a = in,
                            .a_stride = stride,
                            .out = with_room(state.query, state.rows * wide),
                            .out_stride = wide});
  if (!heads.rotation.empty())
    heads.rotation.rotate({state.rows, heads.heads, heads.depth, wide, state.query.data()},
                          state.turns[heads.kind]);
  float* context = with_room(state.context, state.rows * wide);
  contexts(context, wide);
  if (heads.gate.columns() > 0) {
    float* gate = with_room(state.hidden, state.rows * wide);
    kernels::packed_products({.rows = state.rows,
                              .matrix = &heads.gate,
                              .a = in,
                              .a_stride = stride,
                              .out = gate,
                              .out_stride = wide});
    const auto of_rows = [&](float* x) { return at::from_blob(x, {state.rows, wide}, at::kFloat); };
    of_rows(context).mul_(of_rows(gate).sigmoid_());
  }
  kernels::packed_products({.rows = state.rows,
                            .matrix = &heads.output,
                            .a = state.context.data(),
                            .a_stride = wide,
                            .accumulate = true,
                            .out = state.x.data(),
                            .out_stride = stride});
}

// `keys` returns the keys for the rows of a group, given the first row.
template <class Keys>
void PackedStack::attend_cached(State& state, const Heads& heads, const float* in,
                                const Keys& keys) const {
  attend(state, heads, in, [&](float* context, int64_t wide) {
    int64_t first = 0;
    for (const State::Group& group : state.groups) {
      kernels::CachedAttention problem = keys(group, first);
      problem.rows = group.count * (state.rows / state.count);
      problem.heads = heads.heads;
      problem.key_heads = heads.key_heads;
      problem.depth = problem.value_depth = heads.depth;
      problem.scale = heads.scale;
      problem.query = state.query.data() + first * wide;
      problem.query_stride = wide;
      problem.context = context + first * wide;
      problem.context_stride = wide;
      kernels::cached_attention(problem);
      first += problem.rows;
    }
  });
}

float* PackedStack::keys_and_values(State& state, const Heads& heads, const float* in, int64_t rows,
                                    int64_t stride) {
  const int64_t slot = 2 * heads.width();
  float* fresh = with_room(state.fresh, rows * slot);
  kernels::packed_products({.rows = rows,
                            .matrix = &heads.key_value,
                            .a = in,
                            .a_stride = stride,
                            .out = fresh,
                            .out_stride = slot});
  return fresh;
}

void PackedStack::read_self(State& state, size_t index, const float* in, float* weights) const {
  const Heads& heads = layers_[index].self;
  const int64_t stride = up_to(config_.depth, PackedMatrix::panel);
  const int64_t positions = state.rows / state.count, slot = 2 * heads.width();
  float* fresh = keys_and_values(state, heads, in, state.rows, stride);
  if (!heads.rotation.empty())
    heads.rotation.rotate({state.rows, heads.key_heads, heads.depth, slot, fresh},
                          state.turns[heads.kind]);
  const Tensor bias = bias_of(state, layers_[index]);
  const auto& newest = state.groups[0].steps;  // the same for all groups
  for (auto step = newest.end() - positions; step != newest.end(); ++step, fresh += slot)
    step->block->keep(layers_[index].cached, step->position, state.count, fresh, positions * slot);
  const bool several = !state.reader_lengths.empty();
  attend_cached(state, heads, in, [&](const State::Group& group, int64_t first) {
    state.slots.clear();
    for (const State::Step& step : group.steps)
      state.slots.push_back(step.block->key(layers_[index].cached, step.position));
    return kernels::CachedAttention{
        .keys = group.positions(),
        .lengths = several ? state.reader_lengths.data() + first : nullptr,
        .bias = bias.defined() ? bias.data_ptr<float>() : nullptr,
        .bias_stride = 2 * state.bias_room - 1,
        .bias_offsets = state.bias_offsets.data() + first,
        .type = cache_type_,
        .slots = state.slots.data(),
        .places = (several ? state.reader_places : state.places).data() + first * state.room,
        .row_stride = state.room,
        .key_stride = 1,
        .place_stride = group.steps[0].block->row_stride(),
        .value_offset = group.steps[0].block->value_offset(),
        .weights = weights};
  });
}

// Cross-attention: each row reads one source, in the kept layer `index`.
void PackedStack::read_source(State& state, const Heads& heads, size_t index, const float* in,
                              float* weights) const {
  attend_cached(state, heads, in, [&](const State::Group& group, int64_t first) {
    const State::Block& source = *group.source;
    state.slots.clear();
    for (int64_t j = 0; j < source.positions; ++j) state.slots.push_back(source.key(index, j));
    return kernels::CachedAttention{
        .keys = source.positions,
        .lengths = state.lengths.empty() ? nullptr : state.lengths.data() + first,
        .type = source.type,
        .slots = state.slots.data(),
        .places = state.sources.data() + first,
        .row_stride = 1,
        .key_stride = 0,
        .place_stride = source.row_stride(),
        .value_offset = source.value_offset(),
        .weights = weights};
  });
}

// An encoder's self-attention over sequences of these lengths, one after another.
void PackedStack::read_sequences(State& state, const Layer& layer,
                                 const std::vector<int64_t>& lengths, const float* in) const {
  const Heads& heads = layer.self;
  const int64_t slot = 2 * heads.width(), group = heads.heads / heads.key_heads;
  float* fresh =
      keys_and_values(state, heads, in, state.rows, up_to(config_.depth, PackedMatrix::panel));
  if (!heads.rotation.empty())
    heads.rotation.rotate({state.rows, heads.key_heads, heads.depth, slot, fresh},
                          state.turns[heads.kind]);
  const Tensor bias = bias_of(state, layer);
  const auto parts = head_parts(lengths, heads.key_heads, group * heads.depth);
  attend(state, heads, in, [&](float* context, int64_t wide) {
    const int64_t depth = heads.depth;
    share_each(std::ssize(parts), [&](int64_t i) {
      const HeadPart& part = parts[static_cast<size_t>(i)];
      const int64_t queries = part.first * wide + part.head * group * depth;
      const float* key = fresh + part.first * slot + part.head * depth;
      kernels::Problem<float> problem;
      problem.shape = {1, part.heads * group, part.heads, part.length, part.length, depth, depth};
      problem.score.scale = heads.scale;
      problem.scope = heads.scope;
      if (bias.defined()) {
        const int64_t columns = bias.size(1);
        problem.bias.relative = {bias.data_ptr<float>() + part.head * group * columns, 0, columns,
                                 0};
        problem.bias.relative_count = columns;
        problem.bias.relative_offset = state.bias_room - 1;
      }
      problem.query = {state.query.data() + queries, 0, depth, wide};
      problem.key = {key, 0, depth, slot};
      problem.value = {key + heads.width(), 0, depth, slot};
      kernels::attention_forward<float>(problem, {{context + queries, 0, depth, wide}},
                                        /*threads=*/1);
    });
  });
}

void PackedStack::feed_forward(State& state, const Layer& layer, const float* in) const {
  const int64_t stride = up_to(config_.depth, PackedMatrix::panel);
  const int64_t wide = layer.hidden.padded_columns();
  const bool relu = config_.activation == HiddenActivation::relu;
  kernels::packed_products({.rows = state.rows,
                            .matrix = &layer.hidden,
                            .a = in,
                            .a_stride = stride,
                            .relu = relu,
                            .out = with_room(state.hidden, state.rows * wide),
                            .out_stride = wide});
  if (!relu) {
    const int64_t together = shared_numbers / wide + 1;
    share_each((state.rows + together - 1) / together, [&](int64_t part) {
      const int64_t first = part * together, rows = std::min(together, state.rows - first);
      Tensor hidden = at::from_blob(state.hidden.data() + first * wide, {rows, wide}, at::kFloat);
      activate(hidden, config_.activation);
    });
  }
  if (layer.gate.columns() > 0) {
    float* gate = with_room(state.context, state.rows * wide);
    kernels::packed_products({.rows = state.rows,
                              .matrix = &layer.gate,
                              .a = in,
                              .a_stride = stride,
                              .out = gate,
                              .out_stride = wide});
    float* hidden = state.hidden.data();
    for (int64_t i = 0; i < state.rows * wide; ++i) hidden[i] *= gate[i];
  }
  kernels::packed_products({.rows = state.rows,
                            .matrix = &layer.output,
                            .a = state.hidden.data(),
                            .a_stride = wide,
                            .accumulate = true,
                            .out = state.x.data(),
                            .out_stride = stride});
}

// Runs all layers; `attention` adds the attention sublayers of a layer.
template <class Attention>
void PackedStack::pass(State& state, const Attention& attention) const {
  for (const size_t i : order_) {
    attention(i);
    add(state, layers_[i].feed_forward_norm,
        [&](const float* in) { feed_forward(state, layers_[i], in); });
  }
  if (config_.normalise_first) normalise(state, final_norm_, state.x.data());
}

void PackedStack::place_rows(State& state, int64_t positions) const {
  const auto attends = [](const Layer& layer) { return layer.recurrence == nullptr; };
  const auto first = std::find_if(layers_.begin(), layers_.end(), attends);
  if (first == layers_.end()) return;
  const Heads& heads = first->self;
  if (heads.rotation.empty() && heads.bias.empty()) return;
  const std::vector<int64_t> rows = state.row_positions(positions);
  state.turns.resize(1);
  if (!heads.rotation.empty()) heads.rotation.turns(rows, state.turns[0]);
  if (heads.bias.empty()) return;
  constexpr int64_t least_room = 64;
  const int64_t wanted = *std::max_element(rows.begin(), rows.end()) + 1;
  if (wanted > state.bias_room) make_biases(state, std::max(least_room, 2 * wanted));
  state.bias_offsets.clear();
  for (const int64_t row : rows) state.bias_offsets.push_back(state.bias_room - 1 - row);
}

void PackedStack::place_sequences(State& state, const std::vector<int64_t>& lengths) const {
  const int64_t longest = std::max<int64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
  std::vector<int64_t> positions(static_cast<size_t>(longest));
  std::iota(positions.begin(), positions.end(), 0);
  state.turns.resize(std::max<size_t>(1, config_.self_in_turn.size()));
  std::vector<float> table;
  for (const Layer& layer : layers_) {
    std::vector<float>& turns = state.turns[layer.self.kind];
    if (layer.self.rotation.empty() || !turns.empty()) continue;
    layer.self.rotation.turns(positions, table);
    const auto row = std::ssize(table) / longest;
    for (const int64_t length : lengths)
      turns.insert(turns.end(), table.begin(), table.begin() + length * row);
  }
  make_biases(state, longest);
  // attention_forward() adds biases after the scale, cached_attention() before.
  for (const Layer& layer : layers_) {
    Tensor& bias = state.biases[layer.cached];
    if (bias.defined()) bias = bias * layer.self.scale;
  }
}

void PackedStack::make_biases(State& state, int64_t room) const {
  state.bias_room = room;
  state.biases.clear();
  for (const Layer& layer : layers_)
    if (layer.recurrence == nullptr)
      state.biases.push_back(layer.self.bias.empty() ? Tensor() : layer.self.bias.table(room));
}

// The bias of the layer's heads, or of the first layer if all share it; may be undefined.
Tensor PackedStack::bias_of(const State& state, const Layer& layer) const {
  if (state.biases.empty()) return {};
  return state.biases[config_.shared_bias ? 0 : layer.cached];
}

PackedStack::Vectors PackedStack::step(const Tensor& x, State& state, bool with_weights) const {
  const int64_t stride = up_to(config_.depth, PackedMatrix::panel);
  const int64_t positions = x.dim() == 3 ? x.size(1) : 1;
  state.begin(x, stride);
  for (int64_t t = 0; t < positions; ++t)
    state.add_step(cache_type_, cached_layers(), cached_width());
  state.set_readers(positions);
  place_rows(state, positions);
  const bool has_source = !config_.cross.empty();
  Vectors result{nullptr, stride, {}};
  with_weights &= !state.appended && (has_source || layers_.back().recurrence == nullptr);
  if (with_weights)
    result.weights =
        at::empty({state.rows, has_source ? state.groups[0].source->positions : state.steps()});
  pass(state, [&](size_t i) {
    const bool last = i + 1 == layers_.size();
    float* weights = with_weights && last ? result.weights.data_ptr<float>() : nullptr;
    add(state, layers_[i].self.norm, [&](const float* in) {
      if (layers_[i].recurrence != nullptr)
        layers_[i].recurrence->step(in, stride, positions, state.recurrences[i],
                                    state.recurrence_scratch, state.x.data());
      else
        read_self(state, i, in, has_source ? nullptr : weights);
    });
    if (has_source)
      add(state, layers_[i].cross.norm,
          [&](const float* in) { read_source(state, layers_[i].cross, i, in, weights); });
  });
  result.data = state.x.data();
  return result;
}

bool PackedStack::encodes(const TransformerStack& stack) {
  const TransformerStackConfig& config = stack.config();
  if (!takes_layers(stack) || !config.cross.empty() || !config.recurrences.empty()) return false;
  return config.self_in_turn.empty()
             ? encodes_heads(config.self)
             : std::all_of(config.self_in_turn.begin(), config.self_in_turn.end(), encodes_heads);
}

Tensor PackedStack::encode(const Tensor& x, const Tensor& lengths) const {
  State state;
  const int64_t stride = up_to(config_.depth, PackedMatrix::panel);
  const std::vector<int64_t> counts = lengths_or_all(lengths, x);
  state.begin(without_padding(x, counts), stride);
  place_sequences(state, counts);
  pass(state, [&](size_t i) {
    add(state, layers_[i].self.norm,
        [&](const float* in) { read_sequences(state, layers_[i], counts, in); });
  });
  Tensor encoded = at::zeros({x.size(0), x.size(1), config_.depth});
  const float* from = state.x.data();
  for (size_t b = 0; b < counts.size(); ++b)
    for (int64_t j = 0; j < counts[b]; ++j, from += stride)
      std::copy_n(
          from, config_.depth,
          encoded.data_ptr<float>() + (static_cast<int64_t>(b) * x.size(1) + j) * config_.depth);
  return encoded;
}

}  // namespace attend
