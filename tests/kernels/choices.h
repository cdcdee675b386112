#pragma once

#include <array>
#include <limits>
#include <memory>
#include <string>

#include "tests/kernels/case.h"

// Tables of choices for a problem, for the tests that combine them.

namespace attend::kernels::testing {

struct FamilyChoice {
  const char* name;
  Family family;
  Activation activation = Activation::tanh;
};

inline constexpr FamilyChoice kFamilies[] = {
    {"dot", Family::dot},
    {"additive_tanh", Family::additive},
    {"additive_sigmoid", Family::additive, Activation::sigmoid},
    {"additive_relu", Family::additive, Activation::relu},
    {"additive_leaky_relu", Family::additive, Activation::leaky_relu},
    {"squared_distance", Family::squared_distance},
    {"absolute_distance", Family::absolute_distance},
};

struct NormaliserChoice {
  const char* name;
  Normaliser normaliser;
  bool sinks = false;
  double alpha = 0;  // alpha of the first head; the next heads have more
  int64_t top = 0;
};

inline constexpr NormaliserChoice kNormalisers[] = {
    {"softmax", Normaliser::softmax},           {"sinks", Normaliser::softmax, true},
    {"sigmoid", Normaliser::sigmoid},           {"none", Normaliser::none},
    {"sparsemax", Normaliser::sparsemax},       {"entmax15", Normaliser::entmax15},
    {"entmax", Normaliser::entmax, false, 1.2}, {"softpick", Normaliser::softpick},
    {"top_k", Normaliser::top_k, false, 0, 5},  {"stick_breaking", Normaliser::stick_breaking},
};

// Arrays that the conditions of a scope point to.
struct ScopeArrays {
  std::vector<int64_t> lengths, query_starts, key_starts, edge_offsets, edge_keys;
  std::vector<uint8_t> layout, mask;
  std::vector<double> centres;
};

struct ScopeChoice {
  const char* name;
  Scope (*make)(const Shape& s, ScopeArrays& arrays);
};

inline Scope masked(const Shape& s, ScopeArrays& arrays) {
  arrays.mask.resize(s.batch * s.queries * s.keys);
  for (size_t i = 0; i < arrays.mask.size(); ++i) arrays.mask[i] = i * 7919 % 11 < 4;
  return {{{DenseMask{arrays.mask.data(), s.queries * s.keys, 0, s.keys}}}};
}

// Edge lists with a query that sees every key and some that see none; one list per head, or one for
// all.
inline Scope edges(const Shape& s, ScopeArrays& arrays, bool of_heads) {
  const int64_t lists = of_heads ? s.batch * s.heads : 1;
  for (int64_t list = 0; list < lists; ++list) {
    for (int64_t i = 0; i < s.queries; ++i) {
      arrays.edge_offsets.push_back(static_cast<int64_t>(arrays.edge_keys.size()));
      for (int64_t j = 0; j < s.keys && i % 5 != 3; ++j) {
        if (i == 1 || (list * 5 + i * 7919 + j * 31) % 11 < 3) arrays.edge_keys.push_back(j);
      }
    }
    arrays.edge_offsets.push_back(static_cast<int64_t>(arrays.edge_keys.size()));
  }
  const int64_t head = of_heads ? s.queries + 1 : 0;
  return {{{EdgeLists{arrays.edge_offsets.data(), arrays.edge_keys.data(),
                      static_cast<int64_t>(arrays.edge_keys.size()), s.heads * head, head}}}};
}

inline Scope window(int64_t left, int64_t right) { return {{{Window{left, right}}}}; }

inline constexpr ScopeChoice kScopes[] = {
    {"all", [](const Shape&, ScopeArrays&) { return Scope{}; }},
    {"causal", [](const Shape&, ScopeArrays&) { return causal(); }},
    {"causal_later", [](const Shape&, ScopeArrays&) { return causal(-7); }},  // empty rows
    {"window", [](const Shape&, ScopeArrays&) { return window(9, 3); }},
    {"dilated",
     [](const Shape&, ScopeArrays&) {
       return Scope{{{Window{.left = 40, .right = 40, .offset = 5, .dilation = 3}}}};
     }},
    {"lengths",
     [](const Shape& s, ScopeArrays& arrays) {
       for (int64_t b = 0; b < s.batch; ++b)
         arrays.lengths.push_back(b % 2 == 0 ? std::max<int64_t>(0, s.keys - 2) : 0);
       return Scope{{{KeyLengths{arrays.lengths.data()}}}};
     }},
    {"segments",
     [](const Shape& s, ScopeArrays& arrays) {
       arrays.query_starts = {0, s.queries / 3, s.queries / 3, std::max<int64_t>(s.queries - 1, 0)};
       arrays.key_starts = {0, s.keys / 4, s.keys / 2, s.keys};
       for (auto* starts : {&arrays.query_starts, &arrays.key_starts})
         std::sort(starts->begin(), starts->end());
       return Scope{{{Segments{arrays.query_starts.data(), arrays.key_starts.data(), 3}}}};
     }},
    {"blocks",
     [](const Shape& s, ScopeArrays& arrays) {
       constexpr int64_t kBlock = 13, kFirstQuery = 5, kFirstKey = 7;
       const int64_t columns = (s.keys + kFirstKey + kBlock - 1) / kBlock;
       const int64_t blocks = ((s.queries + kFirstQuery) / kBlock + 1) * columns;
       arrays.layout.resize(s.batch * s.heads * blocks);
       for (size_t i = 0; i < arrays.layout.size(); ++i) arrays.layout[i] = i * 31 % 7 < 3;
       return Scope{{{BlockLayout{arrays.layout.data(), columns, kBlock, kFirstQuery, kFirstKey,
                                  s.heads * blocks, blocks}}}};
     }},
    // centres of halves, centres beyond both ends, and NaN for queries that see nothing
    {"around",
     [](const Shape& s, ScopeArrays& arrays) {
       for (int64_t row = 0; row < s.batch * s.queries; ++row) {
         const auto place = static_cast<double>(row * 7919 % (s.keys + 9)) - 4;
         arrays.centres.push_back(row % 17 == 5   ? std::numeric_limits<double>::quiet_NaN()
                                  : row % 17 == 9 ? std::numeric_limits<double>::infinity()
                                                  : place + static_cast<double>(row % 2) / 2);
       }
       return Scope{{{Around{arrays.centres.data(), s.queries, 0, 1, 6}}}};
     }},
    {"mask", masked},
    {"mask_in_window",
     [](const Shape& s, ScopeArrays& arrays) {
       return intersect(masked(s, arrays), window(30, 9));
     }},
    {"edges", [](const Shape& s, ScopeArrays& arrays) { return edges(s, arrays, false); }},
    {"edges_of_heads", [](const Shape& s, ScopeArrays& arrays) { return edges(s, arrays, true); }},
    {"edges_in_window",
     [](const Shape& s, ScopeArrays& arrays) {
       return intersect(edges(s, arrays, true), window(30, 9));
     }},
    {"edges_or_window",
     [](const Shape& s, ScopeArrays& arrays) {
       return unite(edges(s, arrays, false), window(2, 2));
     }},
    {"longformer",
     [](const Shape&, ScopeArrays&) {
       return unite(window(5, 5), unite(Scope{{{Prefix{3}}}}, Scope{{{GlobalRows{2}}}}));
     }},
};

struct BiasChoice {
  const char* name;
  bool dense, slopes, relative, gauss;
  Axes axes = {};
  bool positions = false;
  bool edges = false;  // if the scope has edges
  bool gates = false;
  bool products = false;  // axes.batch: columns of each batch entry
};

inline constexpr BiasChoice kBiases[] = {
    {"none", false, false, false, false},
    {"dense", true, false, false, false, {true, true, true}},
    {"dense_of_heads", true, false, false, false, {false, true, true}},
    {"dense_of_keys", true, false, false, false, {true, false, false}},
    {"slopes", false, true, false, false},
    {"buckets", false, false, true, false, {false, true, false}},
    {"shaw", false, false, true, false, {true, true, true}},
    {"grid", false, false, true, false, {false, false, true}, true},
    {"gauss", false, false, false, true},
    {"edges", false, false, false, false, {false, true, false}, false, true},
    {"edges_of_entries", false, false, false, false, {true, false, false}, false, true},
    {"gates", false, false, false, false, {}, false, false, true},
    {"all", true, true, true, true, {false, true, true}, true, true, true, true},
    {"products", false, false, false, false, {}, false, false, false, true},
    {"products_of_entries",
     false,
     false,
     false,
     false,
     {true, false, false},
     false,
     false,
     false,
     true},
};

// Sums that fall by up to 1 from key to key, far from 0; a query has the sum of a key nearby, so
// that some differences are 0.
template <class S>
void add_gates(Case<S>& c) {
  const Shape& s = c.shape;
  c.key_sums = random_numbers<double>(s.batch * s.heads * s.keys, 0.2, 27);
  c.query_sums.assign(c.rows(), -512);
  for (int64_t head = 0; head < s.batch * s.heads && s.keys > 0; ++head) {
    double* const sums = c.key_sums.data() + head * s.keys;
    double sum = -512;
    for (int64_t j = 0; j < s.keys; ++j) sums[j] = sum -= std::abs(sums[j]);
    for (int64_t i = 0; i < s.queries; ++i)
      c.query_sums[head * s.queries + i] = sums[std::min(i + 1, s.keys - 1)];
  }
}

// Distances up to 2 have their own columns, larger distances share them in pairs.
template <class S>
void add_products(Case<S>& c, bool of_entries) {
  using C = Compute<S>;
  const Shape& s = c.shape;
  c.product_columns = 9;
  c.query_products = random_numbers<C>(c.rows() * c.product_columns, 1, 28);
  c.key_products = random_numbers<C>(s.batch * s.heads * s.keys * c.product_columns, 1, 29);
  for (int64_t b = 0; b < (of_entries ? s.batch : 1); ++b) {
    for (int64_t n = 0; n < s.queries + s.keys - 1; ++n) {
      const int64_t far = n - s.queries + 1 + b;
      const int64_t column = std::abs(far) <= 2 ? far : far / 2 + (far > 0 ? 1 : -1);
      c.columns.push_back(static_cast<int32_t>(std::clamp<int64_t>(column, -4, 4) + 4));
    }
  }
}

template <class S>
void add_bias(Case<S>& c, const BiasChoice& choice) {
  using C = Compute<S>;
  const Shape& s = c.shape;
  c.dense_axes = c.relative_axes = choice.axes;
  if (choice.dense) c.dense = random_numbers<C>(choice.axes.count(s, s.keys), 1, 21);
  if (choice.slopes) c.slopes = random_numbers<C>(s.heads, 0.1, 22);
  c.slope_offset = 3;
  if (choice.relative) {
    c.relative_count = 11;
    c.relative_offset = 4;
    c.relative = random_numbers<C>(choice.axes.count(s, c.relative_count), 1, 23);
  }
  // a grid of width 4, in the layout of attention.h
  if (choice.positions) {
    for (int64_t i = 0; i < s.queries; ++i) c.query_positions.push_back(i / 4 * 7 + i % 4);
    for (int64_t j = 0; j < s.keys; ++j) c.key_positions.push_back(j / 4 * 7 + j % 4);
  }
  c.edge_axes = {choice.axes.batch, choice.axes.heads, false};
  if (const auto scope = edge_scope(c.scope); scope && choice.edges)
    c.edges = random_numbers<C>(c.edge_axes.count(s, scope->lists.longest(s)), 1, 26);
  if (choice.gates) add_gates(c);
  if (choice.products) add_products(c, choice.axes.batch);
  if (!choice.gauss) return;
  c.centres = random_numbers<C>(c.rows(), 0.5 * static_cast<double>(s.keys), 24);
  c.widths = random_numbers<C>(c.rows(), 8, 25);
  for (C& w : c.widths) w = 2 + std::abs(w);
}

template <class S>
void add_sinks(Case<S>& c) {
  for (int64_t h = 0; h < c.shape.heads; ++h) c.sinks.push_back(Compute<S>(h % 3) - 1);
}

// After the shape.
template <class S>
void set_normaliser(const NormaliserChoice& choice, Case<S>& c) {
  c.normaliser = choice.normaliser;
  c.top = choice.top;
  if (choice.sinks) add_sinks(c);
  for (int64_t h = 0; choice.alpha > 0 && h < c.shape.heads; ++h)
    c.alphas.push_back(Compute<S>(choice.alpha + 0.45 * double(h % 4)));
}

}  // namespace attend::kernels::testing
