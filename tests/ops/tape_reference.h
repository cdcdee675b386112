#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/ops/attention.h"
#include "tests/ops/differences.h"
#include "tests/ops/tape.h"

// The operator for one head as scalar loops in long double, with all derivatives. Gives correct
// results when float32 or float64 round, underflow or nearly overflow.
namespace attend::reference {

// Numbers of one input, in memory order.
struct Array {
  std::vector<int64_t> shape;
  std::vector<Number> numbers;

  int64_t size(size_t axis) const { return shape[axis]; }
  const Number& operator()(int64_t i) const { return numbers[static_cast<size_t>(i)]; }
  const Number& operator()(int64_t i, int64_t j) const {
    return numbers[static_cast<size_t>(i * shape.back() + j)];
  }
};

// query, key, value, sink, the score's parameters and the bias tensors.
using Arrays = std::map<std::string, Array, std::less<>>;
using Named = std::map<std::string, at::Tensor, std::less<>>;

// Limits of a number type.
struct Precision {
  at::ScalarType dtype;
  Real unit, least, largest;  // unit round-off, least normal number, largest number
};
Precision precision_of(at::ScalarType dtype);

// A row of the table of biases with its formula.
struct TapeBias {
  std::string name;
  std::function<std::vector<std::pair<std::string, std::vector<int64_t>>>(int64_t queries,
                                                                          int64_t depth)>
      tensors;
  std::function<Bias(const Named&)> make;
  // The bias of mapped, scaled query i and key j.
  std::function<Number(const Arrays&, const std::vector<Number>& query, int64_t i, int64_t j)>
      value;
};
const std::vector<TapeBias>& tape_biases();

struct TapeProblem {
  std::string score;
  const TapeBias* bias = nullptr;
  std::string normaliser = "softmax";  // one with a kernel, or linear
  Named inputs;
  Named weights;  // weights of context and lse in the differentiated scalar
};

// Depth of the score's mapped queries.
int64_t mapped_depth(std::string_view score, int64_t depth, int64_t keys);

// A number with its possible rounding error.
struct Known {
  Real value = 0;
  Real error = 0;
};

struct TapeResult {
  bool fits = true;   // no score and no intermediate number overflows the dtype
  bool known = true;  // rounding does not change the weights too much to compare
  std::vector<Known> context, lse;
  std::map<std::string, std::vector<Known>, std::less<>> gradients;
};

TapeResult attend_on_tape(const TapeProblem& problem, const Precision& precision);

}  // namespace attend::reference
