#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

// Scalar arithmetic in long double with reverse-mode derivatives. Each result also has a size: the
// effect, in units, of rounding its inputs by a unit.
namespace attend::reference {

using Real = long double;

struct Node {
  int64_t parents[2] = {-1, -1};
  Real partials[2] = {0, 0};
  Real sizes[2] = {0, 0};  // sizes of the partials, at least their magnitudes
};

struct Derivative {
  Real value = 0;  // sum over the paths
  Real size = 0;   // sum of the paths' magnitudes
};

class Number;

// Records how each number was computed since the tape began.
class Tape {
 public:
  Tape() { nodes().clear(); }

  static int64_t add(const Node& node) {
    nodes().push_back(node);
    return static_cast<int64_t>(nodes().size()) - 1;
  }

  // Derivatives of the sum of seed times number, with respect to every number.
  std::vector<Derivative> backward(const std::vector<std::pair<Number, Real>>& seeds) const;

 private:
  static std::vector<Node>& nodes() {
    thread_local std::vector<Node> all;
    return all;
  }
};

class Number {
 public:
  Number(Real constant = 0) : value(constant), size(std::abs(constant)) {}
  Number(Real value, Real size, const Node& node)
      : value(value), size(size), node(Tape::add(node)) {}

  static Number input(Real value) { return {value, std::abs(value), Node{}}; }

  Real value = 0;
  Real size = 0;      // at least |value|
  int64_t node = -1;  // -1 for a constant
};

inline std::vector<Derivative> Tape::backward(
    const std::vector<std::pair<Number, Real>>& seeds) const {
  std::vector<Derivative> found(nodes().size());
  for (const auto& [number, seed] : seeds) {
    if (number.node < 0) continue;
    found[static_cast<size_t>(number.node)].value += seed;
    found[static_cast<size_t>(number.node)].size += std::abs(seed);
  }
  for (size_t n = nodes().size(); n-- > 0;) {
    const Derivative own = found[n];
    for (int side = 0; side < 2; ++side) {
      const int64_t parent = nodes()[n].parents[side];
      if (parent < 0) continue;
      Derivative& derivative = found[static_cast<size_t>(parent)];
      // 0 times an overflow is 0: nothing depends on it.
      if (own.value != 0) derivative.value += own.value * nodes()[n].partials[side];
      if (own.size != 0) derivative.size += own.size * nodes()[n].sizes[side];
    }
  }
  return found;
}

inline Number operator+(const Number& a, const Number& b) {
  return {a.value + b.value, a.size + b.size, {{a.node, b.node}, {1, 1}, {1, 1}}};
}
inline Number operator-(const Number& a, const Number& b) {
  return {a.value - b.value, a.size + b.size, {{a.node, b.node}, {1, -1}, {1, 1}}};
}
inline Number operator-(const Number& a) { return Number(0) - a; }
inline Number operator*(const Number& a, const Number& b) {
  return {
      a.value * b.value, a.size * b.size, {{a.node, b.node}, {b.value, a.value}, {b.size, a.size}}};
}

// y = f(x), f'(x) and the size of f'(x).
inline Number function_of(const Number& x, Real y, Real slope, Real slope_size) {
  const Real moved = slope == 0 ? 0 : std::abs(slope) * x.size;
  return {y, std::abs(y) + moved, {{x.node, -1}, {slope, 0}, {slope_size, 0}}};
}

inline Number reciprocal(const Number& x) {
  const Real y = 1 / x.value, error = 1 + x.size / std::abs(x.value);
  return function_of(x, y, -y * y, y * y * error);
}
inline Number operator/(const Number& a, const Number& b) { return a * reciprocal(b); }

// The difference of two inputs is rounded only once, with any cancellation.
inline Number difference(const Number& a, const Number& b) {
  const Real y = a.value - b.value;
  return {y, std::abs(y), {{a.node, b.node}, {1, -1}, {1, 1}}};
}

// `least`: smaller powers may become 0.
inline Number exp(const Number& x, Real least) {
  const Real y = std::exp(x.value);
  return function_of(x, y, y, y + least);
}
inline Number log(const Number& x) {
  return function_of(x, std::log(x.value), 1 / x.value, 1 / x.value);
}
inline Number sqrt(const Number& x) {
  const Real y = std::sqrt(x.value);
  return y == 0 ? Number(0) : function_of(x, y, 1 / (2 * y), 1 / (2 * y));
}
inline Number absolute(const Number& x) {
  const Real sign = x.value > 0 ? 1 : x.value < 0 ? -1 : 0;
  return {std::abs(x.value), x.size, {{x.node, -1}, {sign, 0}, {std::abs(sign), 0}}};
}
inline Number leaky(const Number& x, Real slope_below) {
  const Real slope = x.value > 0 ? 1 : slope_below;
  return {slope * x.value, slope * x.size, {{x.node, -1}, {slope, 0}, {slope, 0}}};
}

}  // namespace attend::reference
