#include "attend/decode/packed_recurrent.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "attend/decode/packed_tensors-inl.h"
#include "attend/kernels/recurrent_gates.h"

namespace attend {
namespace {

using at::Tensor;
using kernels::PackedMatrix;

constexpr int64_t whole_vectors = 16;  // depths of the kernels are multiples of it

Tensor with_padded_depth(const Tensor& x, int64_t depth) {
  return at::constant_pad_nd(x, {0, depth - x.size(-1)});
}

std::vector<float> padded_rows(const Tensor& x, int64_t depth) {
  const Tensor all = contiguous_numbers(with_padded_depth(x.to(at::kFloat), depth));
  return {pointer_of<const float>(all), pointer_of<const float>(all) + all.numel()};
}

bool takes_attention(const AttentionChoices& choices) {
  const ScoreRow& score = score_row(choices.score);
  const bool compares = score.family == Family::dot ||
                        (score.family == Family::additive && score.activation == Activation::tanh);
  return compares && score.features == Features::any && score.map_past == nullptr &&
         (score.map_query == nullptr || score.query_is_affine) &&
         reads_all_by_softmax(choices, /*itself=*/false);
}

template <class T>
void gather_rows(std::vector<T>& all, const Tensor& rows, int64_t width) {
  if (all.empty()) return;
  std::vector<T> moved(static_cast<size_t>(rows.numel() * width));
  const Tensor order = contiguous_numbers(rows);
  const auto* from = pointer_of<const int64_t>(order);
  for (int64_t r = 0; r < rows.numel(); ++r)
    std::copy_n(all.data() + from[r] * width, width, moved.data() + r * width);
  all = std::move(moved);
}

}  // namespace

struct PackedRecurrent::State : DecodingState {
  explicit State(const PackedRecurrent& packed_decoder) : decoder(packed_decoder) {}

  // Row r of the vectors is at data + r * stride.
  struct Rows {
    std::vector<float> data;
    int64_t stride = 0;
  };

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& /*pass*/) override {
    const Vectors vectors = decoder.advance(tokens, *this, with_weights);
    return {decoder.output_.all(vectors.data, count, vectors.stride), vectors.weights};
  }

  NextTokens next(const Tensor& tokens, const NextQuery& query) override {
    const Vectors vectors = decoder.advance(tokens, *this, query.with_weights);
    NextTokens next = decoder.output_.best(vectors.data, count, vectors.stride, query);
    next.weights = vectors.weights;
    return next;
  }

  void reorder(const Tensor& rows, bool /*same_sources*/) override {
    for (std::vector<float>& each : recurrent)
      gather_rows(each, rows, of(StepVector::state).stride);
    for (Rows& each : vectors) gather_rows(each.data, rows, each.stride);
    gather_rows(sources, rows, 1);
    gather_rows(lengths, rows, 1);
    count = rows.numel();
  }

  Rows& of(StepVector vector) { return vectors[static_cast<size_t>(vector)]; }

  const PackedRecurrent& decoder;
  int64_t count = 0;                          // hypotheses
  Rows vectors[4];                            // one per StepVector
  std::vector<std::vector<float>> recurrent;  // h of each layer and, for an LSTM, c
  Tensor memory;                              // [B, S, key and value]
  std::vector<const void*> slots;             // address of each position of the first source
  std::vector<int32_t> sources;               // [count]: row of each hypothesis's source
  std::vector<int64_t> lengths;               // [count]: length of the source; empty: no padding
  // Scratch of a step.
  std::vector<float> gates, more_gates, query, read;
};

bool PackedRecurrent::takes(const RecurrentParts& parts) {
  std::vector<Tensor> all = {parts.embedding, parts.readout_weight, parts.readout_bias};
  for (const auto* module : {static_cast<const torch::nn::Module*>(&parts.cell),
                             static_cast<const torch::nn::Module*>(&parts.attention)}) {
    const std::vector<Tensor> own = module->parameters();
    all.insert(all.end(), own.begin(), own.end());
  }
  return std::all_of(all.begin(), all.end(), is_plain_float) && PackedOutput::takes(parts.output) &&
         takes_attention(parts.attention.choices());
}

std::unique_ptr<const PackedRecurrent> PackedRecurrent::pack(const RecurrentParts& parts,
                                                             WeightType weights) {
  if (!takes(parts)) return nullptr;
  return std::unique_ptr<const PackedRecurrent>(new PackedRecurrent(parts, weights));
}

PackedRecurrent::PackedRecurrent(const RecurrentParts& parts, WeightType weights)
    : embedding_(contiguous_numbers(parts.embedding.detach())),
      cache_type_(cache_type(weights)),
      is_lstm_(parts.cell.is_lstm()),
      residual_(parts.cell.layers().residual),
      state_first_(parts.state_first),
      pieces_(parts.pieces),
      output_(parts.output, weights) {
  const auto depth = [&](StepVector vector) -> int64_t& {
    return depths_[static_cast<size_t>(vector)];
  };
  depth(StepVector::token) = embedding_.size(1);
  depth(StepVector::state) = parts.cell.hidden();
  depth(StepVector::context) = parts.cell.hidden();
  depth(StepVector::extra) = parts.extra_depth;
  pack_cell(parts, weights);
  pack_query(parts, weights);
  const int64_t width = parts.readout_weight.size(0) / pieces_;
  readout_depth_ = up_to(width, whole_vectors);
  // Maxout takes the largest of adjacent numbers; here they move to separate pieces,
  // [pieces][width].
  const auto apart = [&](const Tensor& x) {
    return with_padded_parts(
        x.detach().unflatten(0, {width, pieces_}).transpose(0, 1).flatten(0, 1), pieces_,
        readout_depth_);
  };
  readout_ =
      pack_map(apart(parts.readout_weight), apart(parts.readout_bias), parts.readout, weights);
}

int64_t PackedRecurrent::stride_of(StepVector vector) const {
  return vector == StepVector::token ? depth_of(vector) : up_to(depth_of(vector), whole_vectors);
}

PackedRecurrent::Map PackedRecurrent::pack_map(const Tensor& weight, const Tensor& bias,
                                               const std::vector<StepVector>& reads,
                                               WeightType weights) const {
  Map map{{}, reads};
  int64_t first = 0;
  for (const StepVector vector : reads) {
    const Tensor own = weight.narrow(1, first, depth_of(vector));
    map.matrices.push_back(packed(own, first == 0 ? bias : Tensor(), weights));
    first += depth_of(vector);
  }
  return map;
}

void PackedRecurrent::pack_cell(const RecurrentParts& parts, WeightType weights) {
  const auto all = parts.cell.named_parameters();
  const int64_t gates = is_lstm_ ? 4 : 3;
  for (int64_t i = 0; i < parts.cell.layers().count; ++i) {
    const std::string name =
        (is_lstm_ ? "lstm" : "gru") + (i == 0 ? std::string() : std::to_string(i)) + ".";
    const auto padded = [&](const char* part) {
      return with_padded_parts(all[name + part], gates, stride_of(StepVector::state));
    };
    // A layer above the first reads the output of the layers below.
    const std::vector<StepVector> reads =
        i == 0 ? parts.cell_reads : std::vector{StepVector::state};
    layers_.push_back({pack_map(padded("weight_ih"), padded("bias_ih"), reads, weights),
                       packed(padded("weight_hh"), padded("bias_hh"), weights)});
  }
}

// Finds W and b of the query map W q + b by mapping zeros and the unit vectors.
void PackedRecurrent::pack_query(const RecurrentParts& parts, WeightType weights) {
  const Score score = parts.attention.score();
  int64_t depth = 0;
  for (const StepVector vector : parts.query) depth += depth_of(vector);
  const at::NoGradGuard no_gradient;
  const Tensor bias = score.map_query(at::zeros({1, 1, depth})).flatten();
  const Tensor weight = score.map_query(at::eye(depth).unsqueeze(0)).squeeze(0) - bias;
  key_depth_ = up_to(bias.numel(), whole_vectors);
  query_ = pack_map(with_padded_parts(weight.t(), 1, key_depth_),
                    with_padded_parts(bias, 1, key_depth_), parts.query, weights);
  const Tensor vector = score.of_pairs();
  if (vector.defined()) vector_ = padded_rows(vector.detach(), key_depth_);
}

std::unique_ptr<DecodingState> PackedRecurrent::start(const RecurrentSource& source) const {
  auto state = std::make_unique<State>(*this);
  const Tensor& keys = source.memory.keys;
  const int64_t length = keys.size(1);
  state->count = keys.size(0);
  for (const StepVector vector :
       {StepVector::token, StepVector::state, StepVector::context, StepVector::extra})
    state->of(vector).stride = stride_of(vector);
  const auto rows = [&](const Tensor& x, StepVector vector) {
    return padded_rows(x, stride_of(vector));
  };
  for (const Tensor& each : source.state) state->recurrent.push_back(rows(each, StepVector::state));
  add_up_layers(*state);
  state->of(StepVector::context)
      .data.resize(static_cast<size_t>(state->count * stride_of(StepVector::context)));
  if (source.extra.defined())
    state->of(StepVector::extra).data = rows(source.extra, StepVector::extra);
  state->memory = at::cat({with_padded_depth(keys, key_depth_),
                           with_padded_depth(source.memory.values, stride_of(StepVector::context))},
                          2)
                      .to(cache_type_ == kernels::CacheType::float32 ? at::kFloat : at::kBFloat16)
                      .contiguous();
  for (int64_t j = 0; j < length; ++j)
    state->slots.push_back(state->memory.select(1, j).data_ptr());
  for (int64_t b = 0; b < state->count; ++b) state->sources.push_back(static_cast<int32_t>(b));
  if (source.memory.lengths.defined()) {
    const Tensor lengths = contiguous_numbers(source.memory.lengths.to(at::kCPU, at::kLong));
    const auto* first = pointer_of<const int64_t>(lengths);
    state->lengths.assign(first, first + state->count);
  }
  return state;
}

// Output of the recurrence in a state, as RecurrentCell::output.
void PackedRecurrent::add_up_layers(State& state) const {
  const size_t step = is_lstm_ ? 2 : 1, last = state.recurrent.size() - step;
  std::vector<float>& given = state.of(StepVector::state).data;
  given = state.recurrent[residual_ ? 0 : last];
  for (size_t i = step; residual_ && i <= last; i += step)
    for (size_t k = 0; k < given.size(); ++k) given[k] += state.recurrent[i][k];
}

void PackedRecurrent::apply(const Map& map, State& state, std::vector<float>& out) const {
  const int64_t wide = map.matrices[0].padded_columns();
  with_room(out, state.count * wide);
  for (size_t i = 0; i < map.matrices.size(); ++i) {
    const State::Rows& read = state.of(map.reads[i]);
    kernels::packed_products({.rows = state.count,
                              .matrix = &map.matrices[i],
                              .a = read.data.data(),
                              .a_stride = read.stride,
                              .accumulate = i > 0,
                              .out = out.data(),
                              .out_stride = wide});
  }
}

void PackedRecurrent::recur(State& state) const {
  const int64_t hidden = stride_of(StepVector::state);
  State::Rows& given = state.of(StepVector::state);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    std::vector<float>& own = state.recurrent[is_lstm_ ? 2 * i : i];
    const int64_t wide = layer.from_state.padded_columns();
    apply(layer.from_input, state, state.gates);
    // The gates of an LSTM read the sum of both products.
    std::vector<float>& more = is_lstm_ ? state.gates : state.more_gates;
    kernels::packed_products({.rows = state.count,
                              .matrix = &layer.from_state,
                              .a = own.data(),
                              .a_stride = hidden,
                              .accumulate = is_lstm_,
                              .out = with_room(more, state.count * wide),
                              .out_stride = wide});
    kernels::recurrent_gates({.rows = state.count,
                              .hidden = hidden,
                              .from_input = state.gates.data(),
                              .from_state = more.data(),
                              .stride = wide,
                              .state = own.data(),
                              .cell = is_lstm_ ? state.recurrent[2 * i + 1].data() : nullptr});
    if (i == 0 || !residual_)
      given.data = own;
    else
      for (size_t k = 0; k < own.size(); ++k) given.data[k] += own[k];
  }
}

void PackedRecurrent::attend(State& state, float* weights) const {
  apply(query_, state, state.query);
  State::Rows& context = state.of(StepVector::context);
  kernels::cached_attention({.rows = state.count,
                             .depth = key_depth_,
                             .value_depth = context.stride,
                             .keys = std::ssize(state.slots),
                             .lengths = state.lengths.empty() ? nullptr : state.lengths.data(),
                             .vector = vector_.empty() ? nullptr : vector_.data(),
                             .query = state.query.data(),
                             .query_stride = query_.matrices[0].padded_columns(),
                             .type = cache_type_,
                             .slots = state.slots.data(),
                             .places = state.sources.data(),
                             .row_stride = 1,
                             .key_stride = 0,
                             .place_stride = state.memory.stride(0),
                             .value_offset = key_depth_,
                             .context = context.data.data(),
                             .context_stride = context.stride,
                             .weights = weights});
}

PackedRecurrent::Vectors PackedRecurrent::advance(const Tensor& tokens, State& state,
                                                  bool with_weights) const {
  const Tensor ids = contiguous_numbers(tokens);
  State::Rows& token = state.of(StepVector::token);
  token.data.resize(static_cast<size_t>(state.count * token.stride));
  for (int64_t r = 0; r < state.count; ++r)
    std::copy_n(
        pointer_of<const float>(embedding_) + pointer_of<const int64_t>(ids)[r] * token.stride,
        token.stride, token.data.data() + r * token.stride);
  Vectors result;
  if (with_weights) result.weights = at::empty({state.count, std::ssize(state.slots)});
  float* weights = with_weights ? result.weights.data_ptr<float>() : nullptr;
  if (state_first_) recur(state);
  attend(state, weights);
  if (!state_first_) recur(state);
  apply(readout_, state, state.read);
  result.stride = readout_.matrices[0].padded_columns();
  for (int64_t r = 0; r < state.count; ++r) {
    float* row = state.read.data() + r * result.stride;
    for (int64_t k = readout_depth_; k < pieces_ * readout_depth_; ++k)
      row[k % readout_depth_] = std::max(row[k % readout_depth_], row[k]);
  }
  result.data = state.read.data();
  return result;
}

}  // namespace attend
