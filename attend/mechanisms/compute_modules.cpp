#include "attend/mechanisms/compute_modules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "attend/base/error.h"
#include "attend/mechanisms/convolution_attention.h"
#include "attend/nn/positions.h"
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

void rotate_both(const Parameters&, Attended& given) {
  encode_queries(given, [](const Tensor& x, int64_t first) { return rotate(x, first); });
  given.key = rotate(given.key);
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

}  // namespace

const ComputeModule* compute_module(const Mechanism* row) {
  static const std::vector<ComputeModule> table = {
      {ModuleKind::rotation,
       "columns (2a, 2a + 1) of position p turned by the angle p 10000^(-2a / D)",
       {},
       rotate_both},
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
  for (const ComputeModule& module : table)
    if (row && row->module_kind == module.kind) return &module;
  return nullptr;
}

}  // namespace attend
