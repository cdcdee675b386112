#include "tests/ops/reference.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "attend/base/error.h"

namespace attend::reference {
namespace {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

// One head of a tensor of any shape, as doubles.
class Numbers {
 public:
  Numbers() = default;
  Numbers(const Tensor& tensor, bool heads_axis, int64_t head) {
    const Tensor own = (heads_axis ? tensor.select(0, head) : tensor).detach();
    shape_ = own.sizes().vec();
    const Tensor flat = own.to(at::kDouble).contiguous().view({-1});
    values_.assign(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  }
  int64_t size(size_t axis) const { return shape_[axis]; }
  double operator()() const { return values_[0]; }
  double operator()(int64_t i) const { return values_[static_cast<size_t>(i)]; }
  double operator()(int64_t i, int64_t j) const {
    return values_[static_cast<size_t>(i * shape_[1] + j)];
  }

 private:
  std::vector<int64_t> shape_;
  std::vector<double> values_;
};

// Inputs of one score.
struct Pair {
  const Numbers& q;  // [Tq, Dq]
  const Numbers& k;  // [Tk, Dk]
  const std::map<std::string, Numbers, std::less<>>& parameters;
  int64_t i, j;
  const std::vector<double>&previous, &total;  // weights of query i - 1, and their sum up to it

  const Numbers* find(std::string_view name) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? nullptr : &found->second;
  }
};

struct Sum {
  double value = 0, terms = 0;
  void add(double term) {
    value += term;
    terms += std::abs(term);
  }
};

Sum dot(const Pair& p) {
  Sum sum;
  for (int64_t a = 0; a < p.q.size(1); ++a) sum.add(p.q(p.i, a) * p.k(p.j, a));
  return sum;
}

Sum scaled_dot(const Pair& p) {
  const Sum sum = dot(p);
  const double scale = std::sqrt(static_cast<double>(p.q.size(1)));
  return {sum.value / scale, sum.terms / scale};
}

Sum general(const Pair& p) {
  const Numbers& w = *p.find("W");
  Sum sum;
  for (int64_t a = 0; a < p.q.size(1); ++a) {
    for (int64_t b = 0; b < p.k.size(1); ++b) sum.add(p.q(p.i, a) * w(a, b) * p.k(p.j, b));
  }
  return sum;
}

// Row a of a projection times a vector; without a weight, number a of the vector.
void project(Sum& sum, const Numbers* weight, int64_t a, const Numbers& x, int64_t row) {
  if (!weight) return sum.add(x(row, a));
  for (int64_t d = 0; d < x.size(1); ++d) sum.add((*weight)(a, d) * x(row, d));
}

double tanh_of(double x) { return std::tanh(x); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double relu_of(double x) { return x > 0 ? x : 0; }
double leaky_relu_of(double x) { return x > 0 ? x : 0.2 * x; }

void add_no_past(Sum&, const Pair&, int64_t) {}

// U f_j with f_jc = sum_t F_ct previous_{j + t - reach}.
void add_location(Sum& hidden, const Pair& p, int64_t a) {
  const Numbers &u = *p.find("U"), &f = *p.find("F");
  const int64_t reach = (f.size(1) - 1) / 2;
  for (int64_t c = 0; c < f.size(0); ++c) {
    for (int64_t t = 0; t < f.size(1); ++t) {
      const int64_t place = p.j + t - reach;
      if (place >= 0 && place < p.k.size(0))
        hidden.add(u(a, c) * f(c, t) * p.previous[static_cast<size_t>(place)]);
    }
  }
}

void add_coverage(Sum& hidden, const Pair& p, int64_t a) {
  hidden.add((*p.find("w_c"))(a)*p.total[static_cast<size_t>(p.j)]);
}

template <double (*activation)(double), void (*add_past)(Sum&, const Pair&, int64_t) = add_no_past>
Sum additive(const Pair& p) {
  const Numbers& v = *p.find("v");
  Sum score;
  for (int64_t a = 0; a < v.size(0); ++a) {
    Sum hidden;
    project(hidden, p.find("W_q"), a, p.q, p.i);
    project(hidden, p.find("W_k"), a, p.k, p.j);
    if (p.find("b")) hidden.add((*p.find("b"))(a));
    add_past(hidden, p, a);
    score.value += v(a) * activation(hidden.value);
    // The slope is at most 1, so that an error of the argument does not grow.
    score.terms += std::abs(v(a)) * (1 + hidden.terms);
  }
  return score;
}

Sum linear(const Pair& p) {
  Sum sum;
  for (int64_t d = 0; d < p.q.size(1); ++d) sum.add((*p.find("w_q"))(d)*p.q(p.i, d));
  for (int64_t d = 0; d < p.k.size(1); ++d) sum.add((*p.find("w_k"))(d)*p.k(p.j, d));
  if (p.find("b")) sum.add((*p.find("b"))());
  return sum;
}

Sum cosine(const Pair& p) {
  Sum product = dot(p);
  double qq = 0, kk = 0;
  for (int64_t a = 0; a < p.q.size(1); ++a) {
    qq += p.q(p.i, a) * p.q(p.i, a);
    kk += p.k(p.j, a) * p.k(p.j, a);
  }
  const double strength = p.find("beta") ? (*p.find("beta"))() : 1.0;
  if (qq == 0 || kk == 0) return {0, 0};
  const double scale = strength / (std::sqrt(qq) * std::sqrt(kk));
  return {product.value * scale, 4 * std::abs(strength)};
}

Sum squared_distance(const Pair& p) {
  Sum sum;
  for (int64_t a = 0; a < p.q.size(1); ++a) {
    const double gap = p.q(p.i, a) - p.k(p.j, a);
    sum.add(-gap * gap);
    sum.terms += std::abs(gap) * (std::abs(p.q(p.i, a)) + std::abs(p.k(p.j, a)));
  }
  return sum;
}

Sum absolute_distance(const Pair& p) {
  Sum sum;
  for (int64_t a = 0; a < p.q.size(1); ++a) {
    sum.add(-std::abs(p.q(p.i, a) - p.k(p.j, a)));
    sum.terms += std::abs(p.q(p.i, a)) + std::abs(p.k(p.j, a));
  }
  return sum;
}

Sum location(const Pair& p) {
  Sum sum;
  project(sum, p.find("W"), p.j, p.q, p.i);
  return sum;
}

Sum elu_features(const Pair& p) {
  const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
  Sum sum;
  for (int64_t a = 0; a < p.q.size(1); ++a) sum.add(phi(p.q(p.i, a)) * phi(p.k(p.j, a)));
  return sum;
}

// log sqrt(m) phi(x)_f of one vector.
Sum positive_exponent(const Numbers& omega, int64_t feature, const Numbers& x, int64_t row) {
  const double root = std::sqrt(static_cast<double>(x.size(1)));
  Sum exponent;
  for (int64_t d = 0; d < x.size(1); ++d) {
    exponent.add(omega(feature, d) * x(row, d) / std::sqrt(root));
    exponent.add(-x(row, d) * x(row, d) / (2 * root));
  }
  return exponent;
}

Sum positive_features(const Pair& p) {
  const Numbers& omega = *p.find("omega");
  const auto features = static_cast<double>(omega.size(0));
  Sum score;
  for (int64_t f = 0; f < omega.size(0); ++f) {
    const Sum query = positive_exponent(omega, f, p.q, p.i);
    const Sum key = positive_exponent(omega, f, p.k, p.j);
    const double product = std::exp(query.value + key.value) / features;
    score.value += product;
    // An error of an exponent is a relative error of the product.
    score.terms += product * (1 + query.terms + key.terms);
  }
  return score;
}

const std::map<std::string_view, std::function<Sum(const Pair&)>>& loops() {
  static const std::map<std::string_view, std::function<Sum(const Pair&)>> table = {
      {"dot", dot},
      {"scaled_dot", scaled_dot},
      {"general", general},
      {"additive", additive<tanh_of>},
      {"additive_sigmoid", additive<sigmoid_of>},
      {"additive_relu", additive<relu_of>},
      {"additive_leaky_relu", additive<leaky_relu_of>},
      {"linear", linear},
      {"location_sensitive", additive<tanh_of, add_location>},
      {"coverage", additive<tanh_of, add_coverage>},
      {"squared_distance", squared_distance},
      {"absolute_distance", absolute_distance},
      {"cosine", cosine},
      {"location", location},
      {"elu_features", elu_features},
      {"positive_features", positive_features}};
  return table;
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
  const int64_t group = problem.query.size(1) / problem.key.size(1);
  const Numbers q(problem.query.select(0, b), true, h);
  const Numbers k(problem.key.select(0, b), true, h / group);
  const Numbers v(problem.value.select(0, b), true, h / group);
  std::map<std::string, Numbers, std::less<>> parameters;
  for (const ParameterRow& row : problem.score.row().parameters) {
    const auto found = problem.score.parameters().find(row.name);
    if (found == problem.score.parameters().end()) continue;
    const bool has_heads = found->second.dim() > static_cast<int64_t>(row.shape.size());
    parameters.emplace(row.name, Numbers(found->second, has_heads, h));
  }
  const auto& score = loops().at(problem.score.row().name);
  auto scores = expected.scores.accessor<double, 4>();
  auto weights = expected.weights.accessor<double, 4>();
  auto context = expected.context.accessor<double, 4>();
  auto lse = expected.lse.accessor<double, 3>();
  std::vector<double> previous(static_cast<size_t>(k.size(0))), covered = previous;
  for (int64_t i = 0; i < q.size(0); ++i) {
    double largest = -infinity, total = 0;
    for (int64_t j = 0; j < k.size(0); ++j) {
      scores[b][h][i][j] = -infinity;
      if (!scope.allows(b, h, i, j)) continue;
      const Sum sum = score({q, k, parameters, i, j, previous, covered});
      scores[b][h][i][j] = sum.value;
      expected.score_terms = std::max(expected.score_terms, sum.terms);
      largest = std::max(largest, sum.value);
    }
    for (int64_t j = 0; j < k.size(0); ++j) {
      if (scope.allows(b, h, i, j)) total += std::exp(scores[b][h][i][j] - largest);
    }
    lse[b][h][i] = total == 0 ? -infinity : largest + std::log(total);
    for (int64_t j = 0; j < k.size(0); ++j) {
      const bool allowed = scope.allows(b, h, i, j);
      weights[b][h][i][j] = allowed ? std::exp(scores[b][h][i][j] - largest) / total : 0;
      for (int64_t d = 0; allowed && d < v.size(1); ++d)
        context[b][h][i][d] += weights[b][h][i][j] * v(j, d);
      previous[static_cast<size_t>(j)] = weights[b][h][i][j];
      covered[static_cast<size_t>(j)] += weights[b][h][i][j];
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
  if (!loops().contains(problem.score.row().name)) {
    ADD_FAILURE() << "score " << problem.score.row().name << " has no loop in reference.cpp";
    return expected;
  }
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
