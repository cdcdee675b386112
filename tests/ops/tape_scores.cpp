#include "tests/ops/tape_scores.h"

#include <algorithm>
#include <limits>
#include <random>

namespace attend::reference {
namespace {

constexpr Real infinity = std::numeric_limits<Real>::infinity();

Number dot(const Vector& a, const Vector& b) {
  Number sum = a[0] * b[0];
  for (size_t i = 1; i < a.size(); ++i) sum = sum + a[i] * b[i];
  return sum;
}

// W x
Vector times(const Array& w, const Vector& x) {
  Vector y;
  for (int64_t a = 0; a < w.size(0); ++a) y.push_back(dot(row_of(w, a), x));
  return y;
}

Vector unit(const Vector& x) {
  Real largest = 0;
  for (const Number& each : x) largest = std::max(largest, std::abs(each.value));
  if (largest == 0) return Vector(x.size());
  // Scaled by the largest number, because squares might overflow or underflow.
  Vector scaled;
  for (const Number& each : x) scaled.push_back(each * Number(1 / largest));
  const Number length = sqrt(dot(scaled, scaled));
  for (Number& each : scaled) each = each / length;
  return scaled;
}

Vector elu(const Vector& x, Real least) {
  Vector y;
  for (const Number& each : x) y.push_back(each.value > 0 ? each + Number(1) : exp(each, least));
  return y;
}

Vector positive(const Vector& x, const Array& omega, Real least) {
  const Number root(1 / std::sqrt(std::sqrt(static_cast<Real>(x.size()))));
  Vector scaled, y;
  for (const Number& each : x) scaled.push_back(each * root);
  const Number half = dot(scaled, scaled) * Number(0.5L);
  const Number mean(1 / std::sqrt(static_cast<Real>(omega.size(0))));
  for (const Number& each : times(omega, scaled)) y.push_back(exp(each - half, least) * mean);
  return y;
}

// The contribution of earlier weights to hidden unit a of key j.
Number past(std::string_view score, const Pair& p, int64_t a) {
  if (score == "coverage") return p.get("w_c")(a) * p.total[static_cast<size_t>(p.j)];
  Number sum(0);
  const Array &u = p.get("U"), &f = p.get("F");
  const int64_t reach = (f.size(1) - 1) / 2;
  for (int64_t c = 0; c < f.size(0); ++c)
    for (int64_t t = 0; t < f.size(1); ++t) {
      const int64_t place = p.j + t - reach;
      if (place >= 0 && place < static_cast<int64_t>(p.previous.size()))
        sum = sum + u(a, c) * f(c, t) * p.previous[static_cast<size_t>(place)];
    }
  return sum;
}

// Change of the slope of tanh within `maximum` of x.
Real slope_change(Real x, Real maximum) {
  const auto slope = [](Real argument) { return 1 / (std::cosh(argument) * std::cosh(argument)); };
  const Real nearest = std::abs(x) <= maximum ? 0 : std::abs(x) - maximum;
  return slope(nearest) - slope(std::abs(x) + maximum);
}

// Hidden unit a after the activation.
Number activated(std::string_view score, Number x, size_t a, const Pair& p) {
  x.value += noise(x, p);
  // An overflow of the sum, which the result would hide.
  if (!(x.size * roundings < p.precision.largest)) return Number(0, infinity, Node{});
  if (score == "additive_relu") return leaky(x, 0);
  if (score == "additive_leaky_relu") return leaky(x, 0.2L);
  const bool logistic = score == "additive_sigmoid";
  if (logistic) x = x * Number(0.5L);
  // The slope has an error of a unit of 1, plus its change with the rounded sum.
  const Real y = std::tanh(x.value), cosh = std::cosh(x.value);
  const Real lost = slope_change(x.value, roundings * p.precision.unit * x.size);
  Number tanh =
      function_of(x, y, 1 / (cosh * cosh), 1 + lost / (later_roundings * p.precision.unit));
  // Activation documents when tanh has a relative error of one unit.
  const bool itself = p.get("query").size(0) <= 4 || p.reach[a] <= 0.06L;
  if (!itself) tanh.size += 1;
  return logistic ? (tanh + Number(1)) * Number(0.5L) : tanh;
}

Number compared(std::string_view score, const Vector& q, const Vector& k, const Pair& p) {
  Number sum(0);
  // Squared distances may be computed by products, with errors relative to the largest difference.
  Real widest = 0;
  for (size_t a = 0; a < k.size() && a < q.size(); ++a)
    widest = std::max(widest, std::abs(q[a].value - k[a].value));
  for (size_t a = 0; a < k.size(); ++a) {
    if (score == "squared_distance") {
      Number gap = difference(q[a], k[a]);
      gap.size = 4 * widest;
      sum = sum - gap * gap;
    } else if (score == "absolute_distance") {
      sum = sum - absolute(difference(q[a], k[a]));
    } else if (is_additive(score)) {
      sum = sum + p.get("v")(static_cast<int64_t>(a)) * activated(score, q[a] + k[a], a, p);
    } else {
      sum = sum + q[a] * k[a];
    }
  }
  return sum;
}

}  // namespace

Vector row_of(const Array& array, int64_t row) {
  Vector values;
  for (int64_t a = 0; a < array.shape.back(); ++a) values.push_back(array(row, a));
  return values;
}

Real noise(const Number& x, const Pair& p) {
  const Real maximum = roundings * p.precision.unit * x.size;
  if (p.draw == 0 || maximum == 0 || !std::isfinite(maximum)) return 0;
  if (p.draw == 1) {
    const Real step = std::exp2(std::ceil(std::log2(maximum)));
    return std::round(x.value / step) * step - x.value;
  }
  uint64_t of_key = 0;
  for (const Number& each : p.key()) of_key = 31 * of_key + std::hash<Real>()(each.value);
  std::mt19937_64 engine(p.draw / 2 + 31 * std::hash<Real>()(x.value) + 961 * of_key);
  const Real share = static_cast<Real>(engine() % 2001) / 1000 - 1;
  return maximum * (p.draw % 2 == 0 ? share : -share);
}

bool is_additive(std::string_view score) { return score_row(score).family == Family::additive; }

Vector Pair::projected(const char* name, const Vector& x) const {
  return has(name) ? times(get(name), x) : x;
}

Vector mapped_query(std::string_view score, const Pair& p) {
  const Vector q = p.query();
  if (is_additive(score)) {
    Vector y = p.projected("W_q", q);
    for (size_t a = 0; a < y.size() && p.has("b"); ++a)
      y[a] = y[a] + p.get("b")(static_cast<int64_t>(a));
    return y;
  }
  if (score == "general") {
    Vector y;
    const Array& w = p.get("W");
    for (int64_t b = 0; b < w.size(1); ++b) {
      Number sum = q[0] * w(0, b);
      for (int64_t a = 1; a < w.size(0); ++a) sum = sum + q[static_cast<size_t>(a)] * w(a, b);
      y.push_back(sum);
    }
    return y;
  }
  if (score == "linear") {
    Vector w;
    for (int64_t d = 0; d < p.get("w_q").size(0); ++d) w.push_back(p.get("w_q")(d));
    return {dot(w, q) + (p.has("b") ? p.get("b")(0) : Number(0)), Number(1)};
  }
  if (score == "cosine") {
    Vector y = unit(q);
    for (Number& each : y) each = each * (p.has("beta") ? p.get("beta")(0) : Number(1));
    return y;
  }
  if (score == "location") return p.projected("W", q);
  if (score == "elu_features") return elu(q, p.least());
  if (score == "positive_features") return positive(q, p.get("omega"), p.least());
  return q;
}

Vector mapped_key(std::string_view score, const Pair& p) {
  const Vector k = p.key();
  if (is_additive(score)) {
    Vector y = p.projected("W_k", k);
    if (!score_row(score).map_past || p.previous.empty()) return y;
    for (size_t a = 0; a < y.size(); ++a) y[a] = y[a] + past(score, p, static_cast<int64_t>(a));
    return y;
  }
  if (score == "linear") {
    Vector w;
    for (int64_t d = 0; d < p.get("w_k").size(0); ++d) w.push_back(p.get("w_k")(d));
    return {Number(1), dot(w, k)};
  }
  if (score == "cosine") return unit(k);
  if (score == "elu_features") return elu(k, p.least());
  if (score == "positive_features") return positive(k, p.get("omega"), p.least());
  return k;
}

Number score_of(const TapeProblem& problem, const Pair& p, Real temperature) {
  Vector q = mapped_query(problem.score, p);
  const Real depth = static_cast<Real>(p.get("query").size(1));
  const Number scale(problem.score == "scaled_dot"         ? 1 / std::sqrt(depth)
                     : problem.score == "disentangled_dot" ? 1 / std::sqrt(3 * depth)
                                                           : 1);
  Number score = problem.score == "location"
                     ? q[static_cast<size_t>(p.j)]
                     : scale * compared(problem.score, q, mapped_key(problem.score, p), p);
  for (Number& each : q) each = each * scale;
  if (problem.bias) score = score + problem.bias->value(p.in, q, p.i, p.j);
  return temperature == 1 ? score : score / Number(temperature);
}

}  // namespace attend::reference
