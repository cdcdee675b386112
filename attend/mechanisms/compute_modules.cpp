#include "attend/mechanisms/compute_modules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "attend/base/error.h"
#include "attend/mechanisms/convolution_attention.h"
#include "attend/nn/depth_attention.h"
#include "attend/nn/key_indexer.h"
#include "attend/nn/positions.h"
#include "attend/nn/score_mixer.h"
#include "attend/nn/segment_memory.h"
#include "attend/nn/selective_bias.h"
#include "attend/nn/sparse_branches.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

// Encodes positions in x; its first row has position `first`.
using Encode = std::function<Tensor(const Tensor& x, int64_t first)>;

// Encodes the positions of the queries among the keys, separately for each batch entry if needed.
void encode_queries(Attended& given, const Encode& encode) {
  Tensor& query = given.query;
  const int64_t batch = query.dim() < 3 ? 1 : query.size(0);
  const Tensor offsets =
      offsets_of_queries(given.spec, batch, query.size(-2), given.key.size(-2)).view({-1});
  if (offsets.numel() == 0) return;
  constexpr int64_t farthest = int64_t{1} << 50;  // angles of larger positions have no exact digits
  if (offsets.abs().max().item<int64_t>() > farthest)
    fail("query_offsets move queries by more than {} positions, which are not encoded", farthest);
  if ((offsets == offsets[0]).all().item<bool>()) {
    query = encode(query, offsets[0].item<int64_t>());
    return;
  }
  std::vector<Tensor> entries;
  for (int64_t b = 0; b < batch; ++b)
    entries.push_back(encode(query[b], offsets[b].item<int64_t>()));
  query = at::stack(entries);
}

void rotate_by(const Rotation& rotation, Attended& given) {
  encode_queries(
      given, [&rotation](const Tensor& x, int64_t first) { return rotate(x, first, rotation); });
  given.key = rotate(given.key, 0, rotation);
}

void rotate_both(const Parameters&, Attended& given) { rotate_by({}, given); }

double number_of(const Parameters& parameters, const char* name) {
  const Tensor& given = parameters.at(name);
  if (given.numel() != 1)
    fail("parameter {} has shape {}; it is one number", name, shape_of(given));
  return given.item<double>();
}

void rotate_partly(const Parameters& parameters, Attended& given) {
  rotate_by({.share = number_of(parameters, "share")}, given);
}

// The numbers of a rule, as in model.rotary_scaling.
void rotate_scaled(RotaryRule rule, const Parameters& parameters, Attended& given) {
  const double factor = number_of(parameters, "factor"), length = number_of(parameters, "length");
  if (!(length >= 1 && length <= 0x1p40) || length != std::floor(length))
    fail("parameter length is {}; it must be a whole number, 1 or more", length);
  rotate_by({.scaling = {rule, factor, static_cast<int64_t>(length)}}, given);
}

void rotate_by_yarn(const Parameters& parameters, Attended& given) {
  rotate_scaled(RotaryRule::yarn, parameters, given);
}

void rotate_by_llama3(const Parameters& parameters, Attended& given) {
  rotate_scaled(RotaryRule::llama3, parameters, given);
}

// Encodes the positions of queries, keys and values.
void encode_all(Attended& given, const Encode& encode) {
  encode_queries(given, encode);
  for (Tensor* x : {&given.key, &given.value}) *x = encode(*x, 0);
}

void add_sinusoids(const Parameters&, Attended& given) {
  encode_all(given, [](const Tensor& x, int64_t first) {
    return x + sinusoidal_positions(x.size(-2), x.size(-1), first, x.options());
  });
}

void add_learned(const Parameters& parameters, Attended& given) {
  const Tensor& table = parameters.at("positions");
  encode_all(given, [&](const Tensor& x, int64_t first) {
    const int64_t end = first + x.size(-2);
    if (table.dim() != 2 || table.size(0) < end || table.size(1) != x.size(-1))
      fail("positions has shape {}; {} positions of depth {} need [{} or more, {}]",
           shape_of(table), end, x.size(-1), end, x.size(-1));
    if (first < 0) fail("positions begin at the first key, and queries begin {} before it", -first);
    return x + table.slice(0, first, end);
  });
}

// K and V become E K and F V.
void shorten(const Parameters& parameters, Attended& given) {
  const Tensor& key_projection = parameters.at("E");
  const auto found = parameters.find("F");
  const Tensor& value_projection = found == parameters.end() ? key_projection : found->second;
  for (const Tensor* projection : {&key_projection, &value_projection})
    if (projection->dim() != 2 || projection->size(1) != given.key.size(-2))
      fail("a projection of the keys has shape {}; {} keys need [shortened, {}]",
           shape_of(*projection), given.key.size(-2), given.key.size(-2));
  given.key = at::matmul(key_projection, given.key);
  given.value = at::matmul(value_projection, given.value);
}

// Reads a parameter that is a whole number.
int64_t count_of(const Parameters& parameters, const char* name) {
  const Tensor& given = parameters.at(name);
  if (given.numel() != 1)
    fail("parameter {} has shape {}; it is one whole number", name, shape_of(given));
  const auto number = given.item<double>();
  constexpr double maximum = 0x1p53;  // larger whole numbers have gaps
  if (!(number >= 1 && number <= maximum) || number != std::floor(number))
    fail("parameter {} is {}; it must be a whole number, 1 or more", name, number);
  return static_cast<int64_t>(number);
}

void add_blocks(const Parameters& parameters, Attended& given) {
  const Tensor& layout = parameters.at("layout");
  const Tensor in_scope = layout == 1;
  if (!in_scope.logical_or(layout == 0).all().item<bool>())
    fail("parameter layout holds other numbers than 0 and 1; write 1 for blocks in scope");
  given.spec.scope = given.spec.scope & block_sparse(in_scope, count_of(parameters, "block"));
}

void take_weights(const Tensor& weights, Attended& given) {
  const AttentionCall call = weights_call(weights, given.value, given.spec);
  given.query = call.query;
  given.key = call.key;
  given.spec = call.spec;
}

void subtract_weights(const Parameters& parameters, Attended& given) {
  const auto weights_of = [&](const Tensor& query, const Tensor& key) {
    if (query.sizes() != given.query.sizes() || key.sizes() != given.key.sizes())
      fail("query_2 has shape {} and key_2 {}; they must be {} and {}", shape_of(query),
           shape_of(key), shape_of(given.query), shape_of(given.key));
    const Tensor lse = attention(query, key, given.value, given.spec).lse;
    return attention_weights(query, key, lse, given.spec);
  };
  const Tensor second = weights_of(parameters.at("query_2"), parameters.at("key_2"));
  take_weights(weights_of(given.query, given.key) - parameters.at("factor") * second, given);
}

void normalise_keys(const Parameters&, Attended& given) { given.key = depth_keys(given.key); }

Tensor four_axes_of(const Tensor& x) {
  return x.dim() == 2 ? x.unsqueeze(0).unsqueeze(0) : x.dim() == 3 ? x.unsqueeze(1) : x;
}

void check_begins_at_first(const AttentionSpec& spec, std::string_view what) {
  if (spec.align != Align::first || spec.query_offsets.defined())
    fail("{} begins at the first key; leave out --align and query_offsets", what);
}

// Error unless queries read all earlier keys by softmax without a bias.
void check_plain_causal(const AttentionSpec& spec, std::string_view what) {
  if (last_key(spec.scope) != 0 || !spec.bias.terms.empty() || spec.soft_cap != 0 ||
      &spec.normaliser.row() != &Normaliser().row())
    fail(
        "{} takes scope causal without padding, and softmax without a bias or a cap; leave out the "
        "other options",
        what);
}

void lower_scores(const Parameters&, Attended& given) {
  check_begins_at_first(given.spec, "selective attention");
  const auto first_head = [](const Tensor& x) { return four_axes_of(x).narrow(1, 0, 1); };
  const Tensor bias =
      selective_bias(first_head(given.query), first_head(given.key), given.spec.score,
                     with_four_axes(given.spec.scope, given.query.dim()), 0, {})
          .bias;
  given.spec.bias = given.spec.bias + dense_bias(given.query.dim() == 4 ? bias : bias.squeeze(1));
}

// Takes weights [B, heads, queries, keys] for inputs of any number of axes.
void take_all_weights(const Tensor& weights, Attended& given) {
  std::vector<int64_t> whole = given.query.sizes().vec();
  whole.back() = given.key.size(-2);
  take_weights(weights.view(whole), given);
}

void remember_segments(const Parameters& parameters, Attended& given) {
  check_begins_at_first(given.spec, "a memory of segments");
  check_plain_causal(given.spec, "a memory of segments");
  const Tensor query = four_axes_of(given.query), key = four_axes_of(given.key);
  const Tensor gate = at::sigmoid(parameters.at("beta")).view({-1, 1, 1});
  if (gate.size(0) != 1 && gate.size(0) != query.size(1))
    fail("beta has {} numbers; {} heads need one, or one each", gate.size(0), query.size(1));
  take_all_weights(
      memory_weights(count_of(parameters, "segment"),
                     {query, key, four_axes_of(given.value), query, key}, given.spec, gate),
      given);
}

void mix_scores(const Parameters& parameters, Attended& given) {
  check_begins_at_first(given.spec, "a kernel over scores");
  check_plain_causal(given.spec, "a kernel over scores");
  const Tensor query = four_axes_of(given.query), key = four_axes_of(given.key);
  const Tensor& kernel = parameters.at("kernel");
  const auto found = parameters.find("mix");
  const Tensor scores = attention_scores(
      query, key,
      {.score = given.spec.score, .scope = with_four_axes(given.spec.scope, given.query.dim())});
  const Tensor all = kernel.dim() == 2 ? kernel.expand({query.size(1), -1, -1}) : kernel;
  take_all_weights(mixed_weights(scores, query.size(2), all,
                                 found == parameters.end() ? Tensor() : found->second),
                   given);
}

// The sum of the three branches' weights.
void add_branches(const Parameters& parameters, Attended& given) {
  const Tensor& gates = parameters.at("gates");
  const std::vector<int64_t> shape = {given.query.size(-2), 3};
  if (gates.sizes() != at::IntArrayRef(shape))
    fail("gates has shape {}; {} queries need [{}, 3]", shape_of(gates), shape[0], shape[0]);
  check_begins_at_first(given.spec, "each sparse branch");
  const SparseBranchSizes sizes{count_of(parameters, "block"), count_of(parameters, "count"),
                                count_of(parameters, "window")};
  const SparseHeads heads{four_axes_of(given.query), four_axes_of(given.key),
                          four_axes_of(given.value)};
  take_all_weights(sparse_weights(sizes, heads, given.spec, gates.t().view({3, 1, 1, -1, 1}), {}),
                   given);
}

void keep_indexed_keys(const Parameters& parameters, Attended& given) {
  const Tensor& index = parameters.at("index");
  const std::vector<int64_t> shape = {given.query.size(-2), given.key.size(-2)};
  if (index.sizes() != at::IntArrayRef(shape))
    fail("index has shape {}; {} queries and {} keys need [{}, {}]", shape_of(index), shape[0],
         shape[1], shape[0], shape[1]);
  given.spec.scope =
      given.spec.scope & dense_mask(top_keys(index, {}, count_of(parameters, "count")));
}

// Latent vectors, given as keys and as values, become keys K c and values V c.
void expand_latent(const Parameters& parameters, Attended& given) {
  const auto mapped = [&](const char* name, const Tensor& latent) {
    const Tensor& map = parameters.at(name);
    if (map.dim() != 2 || map.size(1) != latent.size(-1))
      fail("{} has shape {}; vectors of {} numbers need [depth, {}]", name, shape_of(map),
           latent.size(-1), latent.size(-1));
    return at::matmul(latent, map.t());
  };
  given.key = mapped("K", given.key);
  given.value = mapped("V", given.value);
}

// Scores of 0, and -alpha_h |delta_ij - Delta_h|^2 on an image in row-major order.
void look_at_places(const Parameters& parameters, Attended& given) {
  const int64_t width = count_of(parameters, "width");
  const int64_t pixels = given.query.size(-2);
  if (pixels % width != 0 || given.key.size(-2) != pixels)
    fail("width is {}: an image of {} queries and {} keys has whole rows of 1 or more", width,
         pixels, given.key.size(-2));
  const Tensor alpha = parameters.at("alpha"), places = parameters.at("Delta");
  if (places.dim() < 1 || places.size(-1) != 2 || places.dim() != alpha.dim() + 1)
    fail("Delta has shape {}, alpha {}; they must be [heads, 2] and [heads], or [2] and one number",
         shape_of(places), shape_of(alpha));
  // An image without pixels has a height of 1.
  const GridSize image = {std::max<int64_t>(1, pixels / width), width};
  given.spec.bias = given.spec.bias + grid(distance_scores(alpha, places, image));
  given.query = given.query * 0;
}

// Numbers of a rotation for sequences longer than in training.
std::vector<ChoiceParameter> scaling_parameters() {
  return {{"factor", "", "s, how much longer sequences are than in training", 0, true, false},
          {"length", "", "L, positions in training", 0, true, false}};
}

// Modules that change positions, or the length of the sequence.
std::vector<ComputeModule> position_modules() {
  return {
      {ModuleKind::rotation,
       "columns (2a, 2a + 1) of position p turned by the angle p 10000^(-2a / D)",
       {},
       rotate_both},
      {ModuleKind::partial_rotation,
       "the first floor(share D) columns turned in pairs",
       {{"share", "", "share of the columns that turn, above 0 and at most 1", 0, true, false}},
       rotate_partly},
      {ModuleKind::yarn_rotation,
       "columns (2a, 2a + 1) of position p turned by p f'_a and multiplied by 0.1 ln s + 1",
       scaling_parameters(), rotate_by_yarn},
      {ModuleKind::llama3_rotation, "columns (2a, 2a + 1) of position p turned by p f'_a",
       scaling_parameters(), rotate_by_llama3},
      {ModuleKind::sinusoids,
       "x_p + sin, cos(p / 10000^(2a / D)) in columns 2a, 2a + 1",
       {},
       add_sinusoids},
      {ModuleKind::learned_positions,
       "x_p + positions_p",
       {{"positions", "length, depth", "a trained vector per position", 2, true}},
       add_learned},
      {ModuleKind::length_projection,
       "E K and F V, the sequence shortened",
       {{"E", "shortened, keys", "the projection of the keys", 2, true},
        {"F", "shortened, keys", "the projection of the values; absent: E", 2, false}},
       shorten},
  };
}

// Modules that choose, combine or make keys.
std::vector<ComputeModule> key_modules() {
  return {
      {ModuleKind::difference,
       "w_ij - factor w'_ij, the weights of both softmaxes",
       {{"query_2", "queries, query_depth", "queries of the weights to subtract", 2, true},
        {"key_2", "keys, key_depth", "keys of the weights to subtract", 2, true},
        {"factor", "", "the factor l", 0, true}},
       subtract_weights},
      {ModuleKind::branches,
       "the gated weights of the means of past blocks, of selected blocks and of a window, added",
       {{"gates", "queries, 3", "gates of the three branches", 2, true},
        {"block", "", "keys per block", 0, true, false},
        {"count", "", "selected blocks per query", 0, true, false},
        {"window", "", "last keys that a query reads", 0, true, false}},
       add_branches},
      {ModuleKind::indexer,
       "the keys with the largest numbers of the index",
       {{"index", "queries, keys", "I_ij of the indexer", 2, true, false},
        {"count", "", "keys per query", 0, true, false}},
       keep_indexed_keys},
      {ModuleKind::selection,
       "s_ij - F_ij, F_ij = sum_{j < t < i} max(0, s_tj) of the first head, F_i0 = 0",
       {},
       lower_scores},
      {ModuleKind::memory,
       "(1 - g) softmax_j(s_ij) in the own segment + g f(q_i) . f(k_j) / sum_j of the segments "
       "before, g = sigmoid(beta)",
       {{"beta", "", "the gate before its sigmoid, a number or [heads]", 0, true},
        {"segment", "", "keys per segment", 0, true, false}},
       remember_segments},
      {ModuleKind::score_mix,
       "softmax_j(sum_ab kernel_ab s_(i - A + 1 + a, j - B / 2 + b)), the last row of the kernel "
       "for "
       "the query itself",
       {{"kernel", "A, B", "factors of the scores of A last queries and B keys; or [heads, A, B]",
         2, true},
        {"mix", "groups, g, g", "factors [from, to] of the weights of each g heads; absent: none",
         3, false}},
       mix_scores},
      {ModuleKind::depth, "keys v_j / rms(v_j) of the outputs v_j", {}, normalise_keys},
      {ModuleKind::latent,
       "K c and V c of the latent vectors c that --key and --value give",
       {{"K", "query_depth, key_depth", "the map to keys", 2, true},
        {"V", "value_depth, key_depth", "the map to values", 2, true}},
       expand_latent},
      {ModuleKind::blocks,
       "block (i / block, j / block) of the layout",
       {{"layout", "query blocks, key blocks", "1 for blocks in scope, else 0", 2, true, false},
        {"block", "", "positions per block", 0, true, false}},
       add_blocks},
      {ModuleKind::convolution,
       "scores are only -alpha |delta_ij - Delta|^2",
       {{"width", "", "pixels per row of the image", 0, true, false},
        {"alpha", "", "sharpness, a number or [heads]", 0, true},
        {"Delta", "2", "row and column of the attended place, [2] or [heads, 2]", 1, true}},
       look_at_places},
  };
}

}  // namespace

const ComputeModule* compute_module(const Mechanism* row) {
  static const std::vector<ComputeModule> table = [] {
    std::vector<ComputeModule> all = position_modules();
    for (const ComputeModule& module : key_modules()) all.push_back(module);
    return all;
  }();
  for (const ComputeModule& module : table)
    if (row && row->module_kind == module.kind) return &module;
  return nullptr;
}

}  // namespace attend
