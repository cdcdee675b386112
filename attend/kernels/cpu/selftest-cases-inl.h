#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "attend/kernels/cpu/naive-inl.h"

// Cases of the self-test: tables of choices and random inputs.

namespace attend::kernels {

struct FamilyChoice {
  std::string_view name;
  Family family;
  Activation activation = Activation::tanh;
};

inline constexpr FamilyChoice kFamilies[] = {
    {"dot", Family::dot},
    {"additive", Family::additive},
    {"additive sigmoid", Family::additive, Activation::sigmoid},
    {"additive ReLU", Family::additive, Activation::relu},
    {"additive leaky ReLU", Family::additive, Activation::leaky_relu},
    {"squared distance", Family::squared_distance},
    {"absolute distance", Family::absolute_distance},
};

struct NormaliserChoice {
  std::string_view name;
  Normaliser normaliser;
  bool sink = false;
  double alpha = 0;  // alpha of the first head, for entmax; the next heads have more
  int64_t top = 0;
};

inline constexpr NormaliserChoice kNormalisers[] = {
    {"softmax", Normaliser::softmax},
    {"softmax with a sink", Normaliser::softmax, true},
    {"sigmoid", Normaliser::sigmoid},
    {"no normaliser", Normaliser::none},
    {"sparsemax", Normaliser::sparsemax},
    {"entmax-1.5", Normaliser::entmax15},
    {"entmax-1.2, ..", Normaliser::entmax, false, 1.2},
    {"softpick", Normaliser::softpick},
    {"top 5", Normaliser::top_k, false, 0, 5},
};

inline constexpr NormaliserChoice kLaterNormalisers[] = {
    {"stick-breaking", Normaliser::stick_breaking},
};

inline constexpr std::span<const NormaliserChoice> kNormaliserGroups[] = {kNormalisers,
                                                                          kLaterNormalisers};

// Several rows and a single one, whole tiles and parts.
inline constexpr std::array<Shape, 4> kShapes = {{{2, 2, 1, 33, 70, 17, 11},
                                                  {1, 2, 2, 70, 33, 16, 24},
                                                  {2, 4, 2, 1, 129, 32, 5},
                                                  {1, 1, 1, 20, 65, 3, 40}}};

inline constexpr int64_t kReach = 9;             // reach of the relative table
inline constexpr int64_t kLengths[2] = {29, 0};  // key lengths: the second entry has no keys
inline constexpr int64_t kQueryLengths[2] = {18, 60};
inline constexpr int64_t kQueryOffsets[2] = {-4, 9};

struct ScopeChoice {
  std::string_view name;
  Scope scope;
};

inline const std::vector<ScopeChoice>& scopes() {
  static const std::array<uint8_t, 64> blocks = [] {
    std::array<uint8_t, 64> layout{};
    for (size_t n = 0; n < layout.size(); n += 3) layout[n] = 1;
    return layout;
  }();
  static const std::array<double, 70> centres = [] {
    std::array<double, 70> places{};
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<double>(i * 29 % 75) - 2.5;
    return places;
  }();
  // Each query sees a few keys; every fifth query sees none.
  static const auto edges = [] {
    std::pair<std::vector<int64_t>, std::vector<int64_t>> lists;
    auto& [offsets, keys] = lists;
    for (int64_t i = 0; i <= 70; ++i) {
      offsets.push_back(static_cast<int64_t>(keys.size()));
      for (int64_t j = i * 7 % 10; j < 33 && i % 5 != 3; j += 10) keys.push_back(j);
    }
    return lists;
  }();
  static const std::vector<ScopeChoice> rows = {
      {"all", {}},
      {"causal", causal(3)},
      {"window", {{{Window{.left = 12, .right = 8, .dilation = 2}}}}},
      {"lengths", {{{KeyLengths{kLengths}}}}},
      {"lengths of queries",
       {{{Window{.left = 12, .right = 0, .offset = 3, .offsets = kQueryOffsets},
          QueryLengths{kQueryLengths}}}}},
      {"prefix or window", {{{Prefix{5}}, {Window{.left = 4, .right = 0}}}}},
      {"blocks", {{{BlockLayout{blocks.data(), 2, 20, 0, 0, 32, 8}}}}},
      {"edges",
       {{{EdgeLists{edges.first.data(), edges.second.data(),
                    static_cast<int64_t>(edges.second.size())}}}}},
      {"around centres", {{{Around{centres.data(), 0, 0, 1, 4}}}}},
  };
  return rows;
}

template <class S>
struct SelftestInputs {
  using T = Compute<S>;
  std::vector<S> query, key, value, grad_context;
  std::vector<T> vector, grad_lse, dense, slopes, sinks, relative, centres, widths, alphas;
  std::vector<double> query_sums, key_sums;
};

template <class T>
std::vector<T> normal(int64_t count, std::mt19937_64& engine, double mean = 0) {
  std::normal_distribution<double> distribution(mean);
  std::vector<T> numbers(count);
  for (T& x : numbers) x = stored<T>(distribution(engine));
  return numbers;
}

// Factors of queries and keys: 1; very small, which makes scores nearly equal; very large, if type
// S permits, which puts all weight on the largest score.
template <class S>
std::array<double, 3> magnitudes() {
  if (std::is_same_v<S, double>) return {1, 1e-100, 1e50};
  if (std::is_same_v<S, Float16>) return {1, 0x1p-10, 1};
  return {1, 1e-15, 1e9};
}

// The second half of a head's keys repeats the first half and has the same weights.
template <class S>
void repeat_keys(const Shape& s, std::vector<S>& keys) {
  const int64_t half = s.keys / 2 * s.depth;
  for (int64_t head = 0; head < s.batch * s.key_heads; ++head) {
    const auto first = keys.begin() + head * s.keys * s.depth;
    std::copy_n(first, half, first + half);
  }
}

template <class S>
void scale(double magnitude, std::vector<S>& numbers) {
  for (S& x : numbers) x = stored<S>(magnitude * number(x));
}

// Sums of logarithms of gates over all keys of each head, and their values at the queries.
template <class S>
void add_gate_sums(const Shape& s, std::mt19937_64& engine, SelftestInputs<S>& in) {
  in.key_sums = normal<double>(s.batch * s.heads * s.keys, engine);
  for (int64_t head = 0; head < s.batch * s.heads; ++head) {
    double* const sums = in.key_sums.data() + head * s.keys;
    double sum = -1000;  // far from 0 compared with the differences
    for (int64_t j = 0; j < s.keys; ++j) sums[j] = sum -= std::abs(sums[j]) * 0.1;
    for (int64_t i = 0; i < s.queries; ++i)
      in.query_sums.push_back(sums[std::min(i + 2, s.keys - 1)]);
  }
}

template <class S>
SelftestInputs<S> random_inputs(const Shape& s, uint64_t seed, double magnitude) {
  using T = Compute<S>;
  std::mt19937_64 engine(seed);
  const int64_t rows = s.batch * s.heads * s.queries, keys = s.batch * s.key_heads * s.keys;
  SelftestInputs<S> in;
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
  add_gate_sums(s, engine, in);
  for (int64_t h = 0; h < s.heads; ++h) in.alphas.push_back(T(1.2 + 0.45 * static_cast<double>(h)));
  if (magnitude == 1) return in;
  scale(magnitude, in.query);
  scale(magnitude, in.key);
  repeat_keys(s, in.key);
  return in;
}

template <class S>
struct BiasChoice {
  std::string_view name;
  void (*apply)(const SelftestInputs<S>&, Problem<S>&);
};

template <class S>
void set_relative(const SelftestInputs<S>& in, Problem<S>& p, int64_t rows) {
  constexpr int64_t kCount = 2 * kReach + 1;
  p.bias.relative = {in.relative.data(), 0, rows * kCount, rows == 1 ? 0 : kCount};
  p.bias.relative_count = kCount;
  p.bias.relative_offset = kReach;
}

template <class S>
const std::vector<BiasChoice<S>>& biases() {
  using In = SelftestInputs<S>;
  using P = Problem<S>;
  static const std::vector<BiasChoice<S>> rows = {
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
      {"sums of gates",
       [](const In& in, P& p) {
         p.bias.query_sums = in.query_sums.data();
         p.bias.key_sums = in.key_sums.data();
       }},
      {"soft cap", [](const In&, P& p) { p.score.soft_cap = 4; }},
      {"dropout",
       [](const In&, P& p) {
         p.dropout = {0.3, 11};
       }},
  };
  return rows;
}

template <class S>
Problem<S> make_problem(const SelftestInputs<S>& in, const Shape& s, const FamilyChoice& family,
                        const NormaliserChoice& normaliser) {
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
  if (normaliser.alpha > 0) p.alphas = in.alphas.data();
  p.top = normaliser.top;
  p.query = contiguous(in.query.data(), s.heads, s.queries, s.depth);
  p.key = contiguous(in.key.data(), s.key_heads, s.keys, s.depth);
  p.value = contiguous(in.value.data(), s.key_heads, s.keys, s.value_depth);
  return p;
}

}  // namespace attend::kernels
