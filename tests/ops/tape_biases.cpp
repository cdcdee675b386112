#include <cstdlib>

#include "tests/ops/tape_reference.h"

namespace attend::reference {
namespace {

using at::Tensor;
using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;
using Vector = std::vector<Number>;

const Array& get(const Arrays& in, const char* name) { return in.find(name)->second; }
const Tensor& get(const Named& in, const char* name) { return in.find(name)->second; }

// q_i . r_c, with c the distance, clamped to -2..2
Number relative_key(const Arrays& in, const Vector& query, int64_t i, int64_t j) {
  const int64_t place = std::min<int64_t>(std::max<int64_t>(j - i, -2), 2) + 2;
  Number sum(0);
  for (size_t a = 0; a < query.size(); ++a)
    sum = sum + query[a] * get(in, "relative_keys")(place, static_cast<int64_t>(a));
  return sum;
}

// q_i . r_c, with c the distance from the key on, clamped to -2..1
Number by_distance(const Arrays& in, const Vector& query, int64_t i, int64_t j) {
  const int64_t place = std::min<int64_t>(std::max<int64_t>(i - j + 2, 0), 3);
  Number sum(0);
  for (size_t a = 0; a < query.size(); ++a)
    sum = sum + query[a] * get(in, "by_distance")(place, static_cast<int64_t>(a));
  return sum;
}

}  // namespace

// For up to 6 queries and 5 keys.
const std::vector<TapeBias>& tape_biases() {
  static const std::vector<TapeBias> table = {
      {"dense",
       [](int64_t queries, int64_t) {
         return Shapes{{"dense", {queries, 5}}};
       },
       [](const Named& x) { return dense_bias(get(x, "dense")); },
       [](const Arrays& in, const Vector&, int64_t i, int64_t j) {
         return get(in, "dense")(i, j);
       }},
      {"alibi",
       [](int64_t, int64_t) {
         return Shapes{{"slopes", {1}}};
       },
       [](const Named& x) { return alibi(get(x, "slopes")); },
       [](const Arrays& in, const Vector&, int64_t i, int64_t j) {
         return -(get(in, "slopes")(0) * Number(static_cast<Real>(std::abs(i - j))));
       }},
      // Distances below 8 have separate buckets.
      {"buckets",
       [](int64_t, int64_t) {
         return Shapes{{"buckets", {32}}};
       },
       [](const Named& x) { return buckets({.table = get(x, "buckets")}); },
       [](const Arrays& in, const Vector&, int64_t i, int64_t j) {
         return get(in, "buckets")(std::abs(j - i) + (j > i ? 16 : 0));
       }},
      {"relative_keys",
       [](int64_t, int64_t depth) {
         return Shapes{{"relative_keys", {5, depth}}};
       },
       [](const Named& x) { return relative_keys(get(x, "relative_keys")); }, relative_key},
      {"content_to_position",
       [](int64_t, int64_t depth) {
         return Shapes{{"by_distance", {4, depth}}};
       },
       [](const Named& x) { return content_to_position({.table = get(x, "by_distance")}); },
       by_distance},
      {"gaussian",
       [](int64_t queries, int64_t) {
         return Shapes{{"centres", {queries}}, {"widths", {queries}}};
       },
       [](const Named& x) { return gaussian(get(x, "centres"), get(x, "widths")); },
       [](const Arrays& in, const Vector&, int64_t i, int64_t j) {
         const Number away =
             difference(Number(static_cast<Real>(j)), get(in, "centres")(i)) / get(in, "widths")(i);
         return -(away * away * Number(0.5L));
       }},
      // A grid of 2 rows of 3.
      {"grid",
       [](int64_t, int64_t) {
         return Shapes{{"grid", {3, 5}}};
       },
       [](const Named& x) { return grid(get(x, "grid")); },
       [](const Arrays& in, const Vector&, int64_t i, int64_t j) {
         return get(in, "grid")(j / 3 - i / 3 + 1, j % 3 - i % 3 + 2);
       }},
  };
  return table;
}

}  // namespace attend::reference
