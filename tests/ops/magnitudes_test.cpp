// Tests of the operator with tiny and huge numbers: every score x normaliser x bias, values and
// gradients of both paths against scalar loops in long double.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/ops/reference.h"
#include "tests/ops/tape_reference.h"

namespace attend::reference {
namespace magnitudes_test {

using at::Tensor;

constexpr int64_t keys = 5, depth = 4, value_depth = 2;

// Distribution of the keys. Small integers times a power of 2 are added without rounding, so that
// equal scores are exactly equal.
enum class Keys { scattered, clusters, equal, one_large, count };

// The power of the magnitude that each input is multiplied by.
struct Way {
  const char* name;
  int query, key, value, parameters, bias;
};
constexpr Way ways[] = {{"queries", 1, 0, 0, 0, 0},
                        {"keys", 0, 1, 0, 0, 0},
                        {"both", 1, 1, 0, 0, 0},
                        {"queries over keys", 1, -1, 0, 0, 0},
                        {"values", 0, 0, 1, 0, 0},
                        {"parameters", 0, 0, 0, 1, 0},
                        {"bias", 0, 0, 0, 0, 1},
                        {"keys and bias", 0, 1, 0, 0, 1},
                        {"queries and values", 1, 0, -1, 0, 0}};

class Inputs {
 public:
  Inputs(const ScoreRow& row, const TapeBias* bias, std::string_view normaliser, Keys lie,
         const Way& way, double magnitude, uint64_t seed)
      : engine_(seed), lie_(lie), magnitude_(magnitude) {
    // Up to four queries have separate kernels.
    const int64_t queries = seed % 2 == 0 ? 3 : 6;
    problem_.score = row.name;
    problem_.bias = bias;
    problem_.normaliser = normaliser;
    add("query", {queries, depth}, way.query);
    add("key", {keys, depth}, way.key);
    add("value", {keys, value_depth}, way.value);
    lay_keys();
    for (const ParameterRow& parameter : row.parameters) {
      std::vector<int64_t> shape;
      for (const Axis axis : parameter.shape)
        shape.push_back(axis == Axis::keys           ? keys
                        : axis == Axis::filters      ? 2
                        : axis == Axis::filter_width ? 3
                                                     : depth);
      add(std::string(parameter.name), shape, way.parameters);
    }
    if (bias)
      for (const auto& [name, shape] : bias->tensors(queries, mapped_depth(row.name, depth, keys)))
        add_bias(name, shape, way.bias);
    if (bias && Normaliser(normaliser).row().name == "softmax") add("sink", {1}, way.bias);
    problem_.weights = {{"context", whole({queries, value_depth})}, {"lse", whole({queries})}};
  }

  const TapeProblem& problem() const { return problem_; }

 private:
  Tensor whole(const std::vector<int64_t>& shape) {
    Tensor x = at::empty(shape, at::kDouble);
    double* numbers = x.data_ptr<double>();
    for (int64_t n = 0; n < x.numel(); ++n)
      numbers[n] = static_cast<double>(engine_() % 3 + 1) * (engine_() % 2 == 0 ? 1 : -1);
    return x;
  }

  void add(const std::string& name, const std::vector<int64_t>& shape, int power) {
    problem_.inputs[name] = whole(shape) * std::pow(magnitude_, power);
  }

  void add_bias(const std::string& name, const std::vector<int64_t>& shape, int power) {
    add(name, shape, name == "centres" ? 0 : power);
    Tensor& x = problem_.inputs[name];
    if (name == "widths") x = x.abs();
    if (name != "dense" || lie_ != Keys::equal) return;
    // A row without keys, and a key that no query sees.
    x.select(0, 1).fill_(-INFINITY);
    x.select(1, 3).fill_(-INFINITY);
  }

  void lay_keys() {
    Tensor &key = problem_.inputs["key"], &query = problem_.inputs["query"];
    const double of_key = key.abs().min().item<double>(),
                 of_query = query.abs().min().item<double>();
    if (lie_ == Keys::equal)
      for (const int64_t j : {2, 4}) key[j] = key[0];
    if (lie_ == Keys::one_large) key[3] *= 64;
    if (lie_ != Keys::clusters) return;
    for (int64_t j = 0; j < keys; ++j) key[j] += (j % 2 == 0 ? 4096 : -4096) * of_key;
    query += 4096 * of_query;
  }

  std::mt19937_64 engine_;
  Keys lie_;
  double magnitude_;
  TapeProblem problem_;
};

struct Found {
  Tensor context, lse;
  Named gradients;
};

Found attend_with(const TapeProblem& problem, at::ScalarType dtype, Path path) {
  Named x;
  Tensors leaves;
  Parameters parameters;
  for (const auto& [name, tensor] : problem.inputs) {
    x[name] = tensor.to(dtype, /*non_blocking=*/false, /*copy=*/true).set_requires_grad(true);
    leaves.push_back(x[name]);
  }
  for (const ParameterRow& row : score_row(problem.score).parameters)
    parameters.emplace(row.name, x.find(row.name)->second);
  const auto result = attention(x["query"], x["key"], x["value"],
                                {.score = Score(problem.score, parameters),
                                 .bias = problem.bias ? problem.bias->make(x) : Bias(),
                                 .normaliser = Normaliser(problem.normaliser),
                                 .sink = x.contains("sink") ? x["sink"] : Tensor(),
                                 .path = path});
  const auto weights = [&](const char* name) { return problem.weights.at(name).to(dtype); };
  const Tensor lse = result.lse.masked_fill(result.lse.isinf(), 0.0);
  Tensor sum = (result.context * weights("context")).sum();
  if (lse.requires_grad()) sum = sum + (lse * weights("lse")).sum();
  const Tensors found = gradients(sum, leaves, false);
  Found all{result.context.detach(), result.lse.detach(), {}};
  size_t n = 0;
  for (const auto& [name, tensor] : x) all.gradients[name] = found[n++];
  return all;
}

// Largest error over all numbers, and over numbers beyond the allowed rounding.
struct Distance {
  double largest = 0;
  double beyond = 0;
  std::string where;
};

// Numbers out of range, by themselves or in a sum of paths, may become infinity.
bool fits(const Known& x, const Precision& precision) {
  return std::abs(x.value) + x.error < precision.largest / 16;
}

Distance distance(const Tensor& got, const std::vector<Known>& known, const Precision& precision) {
  Distance result;
  const Tensor flat = got.to(at::kDouble).contiguous().view({-1});
  for (int64_t n = 0; n < flat.numel(); ++n) {
    const Known& wanted = known[static_cast<size_t>(n)];
    const double x = flat.data_ptr<double>()[n];
    if (!fits(wanted, precision) && !std::isinf(wanted.value)) continue;
    const Real off = x == wanted.value ? 0 : std::abs(x - wanted.value);
    if (off <= wanted.error && !std::isnan(x)) {
      result.largest = std::max(result.largest, static_cast<double>(off));
      continue;
    }
    result.largest = std::isnan(x) ? INFINITY : std::max(result.largest, static_cast<double>(off));
    result.beyond = result.largest;
    result.where =
        fmt::format("[{}] is {:.9g}, wanted {:.9g} within {:.3g}", n, x,
                    static_cast<double>(wanted.value), static_cast<double>(wanted.error));
  }
  return result;
}

struct Count {
  int64_t all = 0, compared = 0, numbers = 0, sharp = 0;
};

void count_sharp(const std::vector<Known>& known, Count& count) {
  Real largest = 0;
  for (const Known& each : known)
    if (std::isfinite(each.value)) largest = std::max(largest, std::abs(each.value));
  for (const Known& each : known) {
    ++count.numbers;
    count.sharp += each.error <= largest / 100 ? 1 : 0;
  }
}

// If rounding changes the weights, results only need to be numbers like the composed ones.
void expect_finite(const Found& composed, const Found& fused, const TapeResult& wanted,
                   const Precision& precision, const std::string& name) {
  const auto look = [&](const std::string& what, const Tensor& one, const Tensor& other,
                        const std::vector<Known>& known) {
    for (int64_t n = 0; n < one.numel(); ++n) {
      if (!fits(known[static_cast<size_t>(n)], precision)) continue;
      const double x = one.reshape(-1)[n].item<double>(), y = other.reshape(-1)[n].item<double>();
      EXPECT_FALSE(std::isfinite(x) && std::isnan(y)) << name << ", " << what << n;
    }
  };
  look("context", composed.context, fused.context, wanted.context);
  look("lse", composed.lse, fused.lse, wanted.lse);
  for (const auto& [input, known] : wanted.gradients)
    look("gradient of " + input, composed.gradients.at(input), fused.gradients.at(input), known);
}

void compare(const TapeProblem& problem, at::ScalarType dtype, const std::string& name,
             Count& count) {
  const Precision precision = precision_of(dtype);
  const TapeResult wanted = attend_on_tape(problem, precision);
  ++count.all;
  if (!wanted.fits) return;
  const Found composed = attend_with(problem, dtype, Path::composed);
  const bool has_kernel = score_row(problem.score).family.has_value();
  const Found fused = has_kernel ? attend_with(problem, dtype, Path::fused) : composed;
  if (!wanted.known) return expect_finite(composed, fused, wanted, precision, name);
  ++count.compared;
  const auto look = [&](const std::string& what, const Tensor& of_composed, const Tensor& of_fused,
                        const std::vector<Known>& known, double factor) {
    const Distance one = distance(of_composed, known, precision);
    const Distance other = distance(of_fused, known, precision);
    EXPECT_EQ(one.beyond, 0) << name << ", composed " << what << one.where;
    EXPECT_LE(other.beyond, factor * one.largest) << name << ", fused " << what << other.where;
    count_sharp(known, count);
  };
  look("context", composed.context, fused.context, wanted.context, 2);
  look("lse", composed.lse, fused.lse, wanted.lse, 2);
  for (const auto& [input, known] : wanted.gradients)
    look("gradient of " + input, composed.gradients.at(input), fused.gradients.at(input), known, 3);
}

class Magnitudes : public testing::TestWithParam<std::tuple<ScoreRow, at::ScalarType>> {};

TEST_P(Magnitudes, AreRightOnBothPaths) {
  const auto& [row, dtype] = GetParam();
  const bool is_float = dtype == at::kFloat;
  const std::vector<int> powers = is_float ? std::vector{-30, -20, -10, -5, 0, 5, 10, 20, 30}
                                           : std::vector{-200, -100, -30, -8, 0, 8, 30, 100, 200};
  std::vector<std::string> normalisers = {"softmax", "temperature:0.5", "sigmoid",
                                          "none",    "sparsemax",       "entmax15"};
  if (row.features != Features::any) normalisers.emplace_back("linear");
  Count count;
  uint64_t turn = 0;
  for (const std::string& normaliser : normalisers) {
    for (size_t b = 0; b <= tape_biases().size(); ++b) {
      if (normaliser == "linear" && b > 0) continue;
      for (const int power : powers) {
        // Ways and keys alternate, so that every pair of rows meets several of them.
        std::mt19937_64 engine(++turn);
        const Way& way = ways[engine() % std::size(ways)];
        const auto lie = static_cast<Keys>(engine() % static_cast<uint64_t>(Keys::count));
        const TapeBias* bias = b == 0 ? nullptr : &tape_biases()[b - 1];
        const double magnitude = std::exp2(std::round(power * std::log2(10.0)));
        const std::string name =
            fmt::format("{}, {}, {}, {} at 1e{}, keys {}", row.name, normaliser,
                        bias ? bias->name : "no bias", way.name, power, static_cast<int>(lie));
        compare(Inputs(row, bias, normaliser, lie, way, magnitude, turn).problem(), dtype, name,
                count);
      }
    }
  }
  // The test is not vacuous. Most problems fit, and most errors are below a hundredth of the
  // largest number. If a row's rounded weights affect the next row, fewer errors are.
  EXPECT_GT(count.compared, count.all / 2);
  EXPECT_GT(count.sharp, count.numbers / (row.map_past ? 4 : 2));
}

INSTANTIATE_TEST_SUITE_P(Table, Magnitudes,
                         testing::Combine(testing::ValuesIn(score_table()),
                                          testing::Values(at::kFloat, at::kDouble)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == at::kFloat ? "_float" : "_double");
                         });

}  // namespace magnitudes_test
}  // namespace attend::reference
