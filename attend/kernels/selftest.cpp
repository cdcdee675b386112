#include "attend/kernels/selftest.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <array>
#include <exception>
#include <random>
#include <string_view>

#include "attend/kernels/naive-inl.h"

namespace attend::kernels {
namespace {

struct FamilyRow {
  std::string_view name;
  Family family;
  Activation activation = Activation::tanh;
};

constexpr FamilyRow kFamilies[] = {
    {"dot", Family::dot},
    {"additive", Family::additive},
    {"additive sigmoid", Family::additive, Activation::sigmoid},
    {"additive ReLU", Family::additive, Activation::relu},
    {"additive leaky ReLU", Family::additive, Activation::leaky_relu},
    {"squared distance", Family::squared_distance},
    {"absolute distance", Family::absolute_distance},
};

struct NormaliserRow {
  std::string_view name;
  Normaliser normaliser;
  bool sink = false;
};

constexpr NormaliserRow kNormalisers[] = {
    {"softmax", Normaliser::softmax},     {"softmax with a sink", Normaliser::softmax, true},
    {"sigmoid", Normaliser::sigmoid},     {"no normaliser", Normaliser::none},
    {"sparsemax", Normaliser::sparsemax}, {"entmax-1.5", Normaliser::entmax15},
};

// A few rows and one, whole tiles and parts of them.
constexpr std::array<Shape, 4> kShapes = {{{2, 2, 1, 33, 70, 17, 11},
                                           {1, 2, 2, 70, 33, 16, 24},
                                           {2, 4, 2, 1, 129, 32, 5},
                                           {1, 1, 1, 20, 65, 3, 40}}};

constexpr int64_t kMostQueries = 70, kMostKeys = 129, kMostBatch = 2;
constexpr int64_t kReach = 9;  // of the relative table
constexpr int64_t kLengths[kMostBatch] = {29, 0};  // of the keys: the second entry has none

struct ScopeRow {
  std::string_view name;
  Scope scope;
};

const std::vector<ScopeRow>& scopes() {
  static const std::array<uint8_t, 64> blocks = [] {
    std::array<uint8_t, 64> layout{};
    for (size_t n = 0; n < layout.size(); n += 3) layout[n] = 1;
    return layout;
  }();
  static const std::vector<ScopeRow> rows = {
      {"all", {}},
      {"causal", causal(3)},
      {"window", {{{Window{.left = 12, .right = 8, .dilation = 2}}}}},
      {"lengths", {{{KeyLengths{kLengths}}}}},
      {"prefix or window", {{{Prefix{5}}, {Window{.left = 4, .right = 0}}}}},
      {"blocks", {{{BlockLayout{blocks.data(), 7, 20}}}}},
  };
  return rows;
}

template <class S>
struct Inputs {
  using T = Compute<S>;
  std::vector<S> query, key, value, grad_context;
  std::vector<T> vector, grad_lse, dense, slopes, sinks, relative, centres, widths;
};

template <class T>
std::vector<T> normal(int64_t count, std::mt19937_64& engine, double mean = 0) {
  std::normal_distribution<double> distribution(mean);
  std::vector<T> numbers(count);
  for (T& x : numbers) x = static_cast<T>(distribution(engine));
  return numbers;
}

template <class S>
Inputs<S> random_inputs(const Shape& s, uint64_t seed) {
  using T = Compute<S>;
  std::mt19937_64 engine(seed);
  const int64_t rows = s.batch * s.heads * s.queries, keys = s.batch * s.key_heads * s.keys;
  Inputs<S> in;
  in.query = normal<S>(rows * s.depth, engine);
  in.key = normal<S>(keys * s.depth, engine);
  in.value = normal<S>(keys * s.value_depth, engine);
  in.grad_context = normal<S>(rows * s.value_depth, engine);
  in.vector = normal<T>(s.heads * s.depth, engine);
  in.grad_lse = normal<T>(rows, engine);
  in.dense = normal<T>(s.heads * s.queries * s.keys, engine);
  in.slopes = normal<T>(s.heads, engine);
  for (T& x : in.slopes) x *= T(0.1);
  in.sinks = normal<T>(s.heads, engine);
  in.relative = normal<T>(s.heads * s.queries * (2 * kReach + 1), engine);
  in.centres = normal<T>(rows, engine, static_cast<double>(s.keys) / 2);
  in.widths = normal<T>(rows, engine, 20);
  return in;
}

template <class S>
struct BiasRow {
  std::string_view name;
  void (*apply)(const Inputs<S>&, Problem<S>&);
};

template <class S>
void set_relative(const Inputs<S>& in, Problem<S>& p, int64_t rows) {
  constexpr int64_t kCount = 2 * kReach + 1;
  p.bias.relative = {in.relative.data(), 0, rows * kCount, rows == 1 ? 0 : kCount};
  p.bias.relative_count = kCount;
  p.bias.relative_offset = kReach;
}

template <class S>
const std::vector<BiasRow<S>>& biases() {
  using In = Inputs<S>;
  using P = Problem<S>;
  static const std::vector<BiasRow<S>> rows = {
      {"no bias", [](const In&, P&) {}},
      {"dense bias",
       [](const In& in, P& p) {
         const Shape& s = p.shape;
         p.bias.dense = {in.dense.data(), 0, s.queries * s.keys, s.keys};
       }},
      {"slopes",
       [](const In& in, P& p) {
         p.bias.slopes = in.slopes.data();
         p.bias.slope_offset = 2;
       }},
      {"relative buckets", [](const In& in, P& p) { set_relative(in, p, 1); }},
      {"relative keys", [](const In& in, P& p) { set_relative(in, p, p.shape.queries); }},
      {"Gaussian",
       [](const In& in, P& p) {
         p.bias.centres = in.centres.data();
         p.bias.widths = in.widths.data();
       }},
      {"soft cap", [](const In&, P& p) { p.score.soft_cap = 2; }},
      {"dropout", [](const In&, P& p) { p.dropout = {0.3, 11}; }},
  };
  return rows;
}

template <class S>
Problem<S> make_problem(const Inputs<S>& in, const Shape& s, const FamilyRow& family,
                        const NormaliserRow& normaliser) {
  Problem<S> p;
  p.shape = s;
  const double root = std::sqrt(static_cast<double>(s.depth));
  p.score = {.family = family.family,
             .scale = (family.family == Family::squared_distance ? 0.5 : 1.0) / root,
             .vector = in.vector.data(),
             .vector_head_stride = s.depth,
             .activation = family.activation};
  p.normaliser = normaliser.normaliser;
  if (normaliser.sink) p.sinks = in.sinks.data();
  p.query = contiguous(in.query.data(), s.heads, s.queries, s.depth);
  p.key = contiguous(in.key.data(), s.key_heads, s.keys, s.depth);
  p.value = contiguous(in.value.data(), s.key_heads, s.keys, s.value_depth);
  return p;
}

// Runs the kernels on a problem; the arrays begin as NaN, so that a number left unwritten shows.
template <class S>
NaiveResults<Compute<S>> run_kernels(const Problem<S>& p, const View<const S>& grad_context,
                                     const Compute<S>* grad_lse, const NaiveResults<double>& like,
                                     const SelftestPasses& passes) {
  using T = Compute<S>;
  const Shape& s = p.shape;
  const auto sized = [](size_t count) {
    return std::vector<T>(count, std::numeric_limits<T>::quiet_NaN());
  };
  NaiveResults<T> r{sized(like.context.size()),  sized(like.lse.size()),
                    sized(like.query.size()),    sized(like.key.size()),
                    sized(like.value.size()),    sized(like.vector.size()),
                    sized(like.dense.size()),    sized(like.slopes.size()),
                    sized(like.sinks.size()),    sized(like.relative.size()),
                    sized(like.centres.size()),  sized(like.widths.size())};
  const auto wanted = [](std::vector<T>& gradient) {
    return gradient.empty() ? nullptr : gradient.data();
  };
  const View<T> context = contiguous(r.context.data(), s.heads, s.queries, s.value_depth);
  const View<const T> written{context.data, context.batch_stride, context.head_stride,
                              context.row_stride};
  const Result<S> result{context, r.lse.data()};
  const Upstream<S> upstream{written, r.lse.data(), grad_context, grad_lse};
  const Gradients<S> gradients{contiguous(r.query.data(), s.heads, s.queries, s.depth),
                               contiguous(r.key.data(), s.key_heads, s.keys, s.depth),
                               contiguous(r.value.data(), s.key_heads, s.keys, s.value_depth),
                               wanted(r.vector),
                               wanted(r.dense),
                               wanted(r.slopes),
                               wanted(r.sinks),
                               wanted(r.relative),
                               wanted(r.centres),
                               wanted(r.widths)};
  if constexpr (std::is_same_v<S, float>) {
    passes.forward(p, result, 1);
    passes.backward(p, upstream, gradients, 1);
  } else {
    attention_forward(p, result, 1);
    attention_backward(p, upstream, gradients, 1);
  }
  return r;
}
}  // namespace
}  // namespace attend::kernels
