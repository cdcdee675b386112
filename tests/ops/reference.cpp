#include "tests/ops/reference.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <limits>

#include "attend/base/error.h"
#include "tests/ops/tape_scores.h"

namespace attend::reference {
namespace {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

// One head of a tensor of any shape.
Array head_of(const Tensor& tensor, bool has_heads, int64_t head) {
  const Tensor own = (has_heads ? tensor.select(0, head) : tensor).detach();
  const Tensor flat = own.to(at::kDouble).contiguous().view({-1});
  Array array{own.sizes().vec(), {}};
  for (int64_t n = 0; n < flat.numel(); ++n) array.numbers.emplace_back(flat.data_ptr<double>()[n]);
  return array;
}

// Inputs of the score of one head.
Arrays inputs_of(const Problem& problem, int64_t entry, int64_t head) {
  const int64_t group = problem.query.size(1) / problem.key.size(1);
  Arrays inputs;
  inputs.emplace("query", head_of(problem.query.select(0, entry), true, head));
  inputs.emplace("key", head_of(problem.key.select(0, entry), true, head / group));
  inputs.emplace("value", head_of(problem.value.select(0, entry), true, head / group));
  for (const ParameterRow& row : problem.score.row().parameters) {
    const auto found = problem.score.parameters().find(row.name);
    if (found == problem.score.parameters().end()) continue;
    const bool has_heads = found->second.dim() > static_cast<int64_t>(row.shape.size());
    inputs.emplace(row.name, head_of(found->second, has_heads, head));
  }
  return inputs;
}

int64_t length_of(Axis axis, const Sizes& sizes) {
  switch (axis) {
    case Axis::query_depth:
      return sizes.query_depth;
    case Axis::key_depth:
      return sizes.key_depth;
    case Axis::attention_depth:
      return sizes.attention_depth;
    case Axis::keys:
      return sizes.keys + 2;  // positions after the keys must not be read
    case Axis::filters:
      return 2;
    case Axis::filter_width:
      return 3;
  }
  return 0;
}

// Depths by the given parameters: an input without a projection has the projection's output depth,
// or else the other input's depth.
void settle_depths(const ScoreRow& row, Given given, Sizes& sizes) {
  const auto settle = [&](Axis axis, int64_t& depth, int64_t other) {
    int64_t settled = other;
    for (const ParameterRow& parameter : row.parameters) {
      if (parameter.shape.empty() || (parameter.shape[0] != axis && parameter.shape.back() != axis))
        continue;
      const bool is_given = parameter.required || given == Given::all;
      settled = is_given ? depth : length_of(parameter.shape[0], sizes);
    }
    depth = settled;
  };
  settle(Axis::query_depth, sizes.query_depth, sizes.key_depth);
  settle(Axis::key_depth, sizes.key_depth, sizes.query_depth);
}

void loop_head(const Problem& problem, const ScopeCase& scope, int64_t b, int64_t h,
               Expected& expected) {
  static const Precision precision{at::kDouble, 0x1p-53L, std::numeric_limits<double>::min(),
                                   std::numeric_limits<double>::max()};
  const Arrays inputs = inputs_of(problem, b, h);
  const int64_t queries = inputs.at("query").size(0), keys = inputs.at("key").size(0);
  const Array& v = inputs.at("value");
  TapeProblem score_only;
  score_only.score = problem.score.row().name;
  const std::vector<Real> reach(inputs.contains("v") ? inputs.at("v").numbers.size() : 0, infinity);
  auto scores = expected.scores.accessor<double, 4>();
  auto weights = expected.weights.accessor<double, 4>();
  auto context = expected.context.accessor<double, 4>();
  auto lse = expected.lse.accessor<double, 3>();
  Vector previous(static_cast<size_t>(keys)), covered = previous;
  for (int64_t i = 0; i < queries; ++i) {
    double largest = -infinity, total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      scores[b][h][i][j] = -infinity;
      if (!scope.allows(b, h, i, j)) continue;
      const Tape tape;
      const Number score =
          score_of(score_only, {inputs, precision, 0, i, j, previous, covered, reach}, 1);
      scores[b][h][i][j] = static_cast<double>(score.value);
      expected.score_terms = std::max(expected.score_terms, static_cast<double>(score.size));
      largest = std::max(largest, scores[b][h][i][j]);
    }
    for (int64_t j = 0; j < keys; ++j) {
      if (scope.allows(b, h, i, j)) total += std::exp(scores[b][h][i][j] - largest);
    }
    lse[b][h][i] = total == 0 ? -infinity : largest + std::log(total);
    for (int64_t j = 0; j < keys; ++j) {
      const bool allowed = scope.allows(b, h, i, j);
      weights[b][h][i][j] = allowed ? std::exp(scores[b][h][i][j] - largest) / total : 0;
      for (int64_t d = 0; allowed && d < v.size(1); ++d)
        context[b][h][i][d] += weights[b][h][i][j] * static_cast<double>(v(j, d).value);
      previous[static_cast<size_t>(j)] = weights[b][h][i][j];
      covered[static_cast<size_t>(j)].value += weights[b][h][i][j];
    }
  }
}

// Edge lists of the pairs that a rule allows: one list for all if queries have two axes, otherwise
// one per batch entry and head.
Scope edges_where(const Sizes& sizes, int64_t query_axes,
                  const std::function<bool(int64_t, int64_t, int64_t, int64_t)>& allows) {
  std::vector<int64_t> offsets, keys;
  const bool own = query_axes > 2;
  for (int64_t list = 0; list < (own ? sizes.batch * sizes.heads : 1); ++list) {
    for (int64_t i = 0; i < sizes.queries; ++i) {
      offsets.push_back(static_cast<int64_t>(keys.size()));
      for (int64_t j = 0; j < sizes.keys; ++j)
        if (allows(list / sizes.heads, list % sizes.heads, i, j)) keys.push_back(j);
    }
    offsets.push_back(static_cast<int64_t>(keys.size()));
  }
  Tensor ends = at::tensor(offsets, at::kLong);
  if (own) ends = ends.view({sizes.batch, sizes.heads, sizes.queries + 1});
  return edges(query_axes == 3 ? ends.squeeze(1) : ends, at::tensor(keys, at::kLong));
}

std::vector<ScopeCase> edge_cases(const Sizes& sizes, int64_t query_axes) {
  using N = int64_t;
  const auto has = [](N, N, N i, N j) { return i % 5 != 3 && (2 * i + j) % 3 != 1; };
  const auto own = [](N b, N h, N i, N j) { return i % 4 != 2 && (b + 2 * h + i + 3 * j) % 4 < 2; };
  const Scope scope = edges_where(sizes, 2, has);
  return {{"edges", scope, has},
          {"edges_of_heads", edges_where(sizes, query_axes, own), own},
          {"edges_in_window", scope & window(3),
           [=](N b, N h, N i, N j) { return has(b, h, i, j) && std::abs(i - j) <= 3; }},
          {"edges_or_window", scope | window(1, 0),
           [=](N b, N h, N i, N j) { return has(b, h, i, j) || (i - 1 <= j && j <= i); }}};
}

// Entry 0 begins before the keys; each entry has one more query than the one before.
std::vector<ScopeCase> cases_by_entry(const Sizes& sizes, int64_t query_axes) {
  const Tensor entries = at::arange(sizes.batch, at::kLong);
  const Tensor counts = (entries + 1).clamp_max(sizes.queries);
  using N = int64_t;
  Tensor layouts = at::zeros(
      {sizes.batch, sizes.heads, (sizes.queries + 2) / 3, (sizes.keys + 2) / 3}, at::kBool);
  for (N b = 0; b < sizes.batch; ++b)
    for (N h = 0; h < sizes.heads; ++h)
      for (N y = 0; y < layouts.size(2); ++y)
        for (N x = 0; x < layouts.size(3); ++x) layouts[b][h][y][x] = (b + h + y + 2 * x) % 3 != 0;
  if (query_axes == 3) layouts = layouts.squeeze(1);
  std::vector<ScopeCase> cases = edge_cases(sizes, query_axes);
  cases.insert(cases.end(),
               {
                   {"blocks_of_heads", block_sparse(layouts, 3),
                    [](N b, N h, N i, N j) { return (b + h + i / 3 + 2 * (j / 3)) % 3 != 0; }},
                   {"offsets", window(Window{.left = 3, .right = 1, .offset = 1}, 2 * entries - 1),
                    [](N b, N, N i, N j) { return i + 2 * b - 3 <= j && j <= i + 2 * b + 1; }},
                   {"query_lengths", causal() & query_lengths(counts),
                    [](N b, N, N i, N j) { return i <= b && j <= i; }},
               });
  return cases;
}

}  // namespace

Problem make_problem(const ScoreRow& row, Sizes sizes, Given given, bool parameter_heads,
                     at::ScalarType dtype, uint64_t seed) {
  settle_depths(row, given, sizes);
  auto generator = at::detail::createCPUGenerator(seed);
  // Rounded to the dtype here, so that the loops read the same numbers.
  const auto random = [&](at::IntArrayRef shape) {
    return at::randn(shape, generator, at::TensorOptions().dtype(at::kDouble)).to(dtype);
  };
  Parameters parameters;
  for (const ParameterRow& parameter : row.parameters) {
    if (!parameter.required && given == Given::required) continue;
    std::vector<int64_t> shape;
    if (parameter_heads) shape.push_back(sizes.heads);
    for (const Axis axis : parameter.shape) shape.push_back(length_of(axis, sizes));
    parameters.emplace(parameter.name, random(shape));
  }
  return {random({sizes.batch, sizes.heads, sizes.queries, sizes.query_depth}),
          random({sizes.batch, sizes.key_heads, sizes.keys, sizes.key_depth}),
          random({sizes.batch, sizes.key_heads, sizes.keys, sizes.value_depth}),
          Score(row.name, std::move(parameters))};
}

std::vector<ScopeCase> scope_cases(const Sizes& sizes, int64_t query_axes) {
  Tensor mask = at::zeros({sizes.batch, sizes.heads, sizes.queries, sizes.keys}, at::kBool);
  const auto in_mask = [](int64_t b, int64_t h, int64_t i, int64_t j) {
    return i != 1 && (i + j + b + 2 * h) % 3 != 0;
  };
  auto entries = mask.accessor<bool, 4>();
  for (int64_t b = 0; b < sizes.batch; ++b)
    for (int64_t h = 0; h < sizes.heads; ++h)
      for (int64_t i = 0; i < sizes.queries; ++i)
        for (int64_t j = 0; j < sizes.keys; ++j) entries[b][h][i][j] = in_mask(b, h, i, j);
  if (query_axes == 3) mask = mask.squeeze(1);
  // Batch entry 0 has no key at all.
  const Tensor lengths = (2 * at::arange(sizes.batch, at::kLong)).clamp_max(sizes.keys);
  Tensor layout = at::zeros({(sizes.queries + 1) / 2, (sizes.keys + 1) / 2}, at::kBool);
  for (int64_t i = 0; i < layout.size(0); ++i)
    for (int64_t j = 0; j < layout.size(1); ++j) layout[i][j] = (i + 2 * j) % 3 != 0;
  // Two segments with an empty one between; positions from 5 on are in no segment.
  const auto starts = [](int64_t count) {
    return at::tensor(std::vector<int64_t>{0, 2, 2, 5}, at::kLong).clamp_max(count);
  };
  const auto segment = [](int64_t position) { return position < 2 ? 0 : position < 5 ? 2 : -1; };
  const Tensor pair_mask = at::eye(sizes.queries, sizes.keys, at::kDouble).to(at::kBool);
  using N = int64_t;
  std::vector<ScopeCase> cases = {
      {"all", all_keys(), [](N, N, N, N) { return true; }},
      {"causal", causal(), [](N, N, N i, N j) { return j <= i; }},
      {"window_1", window(1), [](N, N, N i, N j) { return i - 1 <= j && j <= i + 1; }},
      {"window_2_0", window(2, 0), [](N, N, N i, N j) { return i - 2 <= j && j <= i; }},
      {"past", causal(-1), [](N, N, N i, N j) { return j < i; }},
      {"dilated", window(Window{.left = 6, .right = 2, .offset = 1, .dilation = 2}),
       [](N, N, N i, N j) { return i - 5 <= j && j <= i + 3 && (j - i - 1) % 2 == 0; }},
      {"prefix_or_causal", prefix(std::min<N>(2, sizes.keys)) | causal(),
       [](N, N, N i, N j) { return j < 2 || j <= i; }},
      {"window_or_global", window(1) | global_tokens(std::min({N{1}, sizes.queries, sizes.keys})),
       [](N, N, N i, N j) { return (i - 1 <= j && j <= i + 1) || i == 0 || j == 0; }},
      {"segments", segments(starts(sizes.queries), starts(sizes.keys)),
       [=](N, N, N i, N j) { return segment(i) >= 0 && segment(i) == segment(j); }},
      {"blocks", block_sparse(layout, 2),
       [](N, N, N i, N j) { return (i / 2 + 2 * (j / 2)) % 3 != 0; }},
      {"causal_blocks_or_mask", (causal() & block_sparse(layout, 2)) | dense_mask(mask),
       [=](N b, N h, N i, N j) {
         return (j <= i && (i / 2 + 2 * (j / 2)) % 3 != 0) || in_mask(b, h, i, j);
       }},
      {"key_lengths", key_lengths(lengths), [](N b, N, N, N j) { return j < 2 * b; }},
      {"mask", dense_mask(mask), in_mask},
      {"pair_mask", dense_mask(pair_mask), [](N, N, N i, N j) { return i == j; }},
      {"causal_lengths", causal() & key_lengths(lengths),
       [](N b, N, N i, N j) { return j <= i && j < 2 * b; }},
      {"window_mask", window(3, 1) & dense_mask(mask),
       [](N b, N h, N i, N j) {
         return i - 3 <= j && j <= i + 1 && i != 1 && (i + j + b + 2 * h) % 3 != 0;
       }},
      {"everything", window(4) & causal() & key_lengths(lengths) & dense_mask(mask),
       [](N b, N h, N i, N j) {
         return i - 4 <= j && j <= i && j < 2 * b && i != 1 && (i + j + b + 2 * h) % 3 != 0;
       }},
  };
  for (const ScopeCase& more : cases_by_entry(sizes, query_axes)) cases.push_back(more);
  return cases;
}

Expected attend_by_loops(const Problem& problem, const ScopeCase& scope) {
  Expected expected;
  const auto sizes = problem.query.sizes();
  const int64_t keys = problem.key.size(2);
  const auto zeros = [](at::IntArrayRef shape) { return at::zeros(shape, at::kDouble); };
  expected.scores = zeros({sizes[0], sizes[1], sizes[2], keys});
  expected.weights = zeros({sizes[0], sizes[1], sizes[2], keys});
  expected.context = zeros({sizes[0], sizes[1], sizes[2], problem.value.size(3)});
  expected.lse = zeros({sizes[0], sizes[1], sizes[2]});
  for (int64_t b = 0; b < sizes[0]; ++b) {
    for (int64_t h = 0; h < sizes[1]; ++h) loop_head(problem, scope, b, h, expected);
  }
  return expected;
}

std::vector<Path> paths_of(const Problem& problem, const AttentionSpec& spec) {
  AttentionSpec fused = spec;
  fused.path = Path::fused;
  try {
    attention(problem.query, problem.key, problem.value, fused);
  } catch (const Error& error) {
    if (std::string(error.what()).find("path is fused, but") == std::string::npos) throw;
    return {Path::composed};
  }
  return {Path::composed, Path::fused};
}

std::vector<NormaliserRow> fused_normalisers() {
  std::vector<NormaliserRow> rows = normaliser_table();
  std::erase_if(rows, [](const NormaliserRow& row) { return !row.kernel; });
  return rows;
}

std::string test_name(std::string text) {
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

}  // namespace attend::reference
