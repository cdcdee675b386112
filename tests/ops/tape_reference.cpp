#include "tests/ops/tape_reference.h"

#include <algorithm>
#include <limits>

#include "tests/ops/tape_scores.h"

namespace attend::reference {
namespace {

using at::Tensor;

constexpr Real infinity = std::numeric_limits<Real>::infinity();

// Backward computes softmax weights from an lse up to coarse_lse. Its roundings: the lse, two
// conversions of its unit, and the difference from the score.
constexpr Real lse_roundings = 4, coarse_lse = 256;
constexpr uint64_t draws = 5;

Number sigmoid(const Number& s, Real least) {
  const Real y = 1 / (1 + std::exp(-s.value));
  // p - p^2 has an error of a unit of p.
  return function_of(s, y, 1 / (2 + std::exp(s.value) + std::exp(-s.value)), y + least);
}

struct Row {
  Vector weights;
  Number log_sum;  // or the threshold, relative to `top`
  Real top = 0;
  Real blur = 0;  // error of the weights in backward, in later roundings
  bool empty = false;
};

// Number of largest scores with weight, by the rule of the normaliser.
size_t support_size(std::string_view normaliser, std::vector<Real> z) {
  std::sort(z.begin(), z.end(), std::greater<>());
  Real sum = 0, squares = 0;
  size_t size = 1;
  for (size_t n = 0; n < z.size() && z[n] > -4; ++n) {
    const Real k = static_cast<Real>(n + 1);
    sum += z[n];
    squares += z[n] * z[n] / 4;
    const Real mean = sum / 2 / k, spread = squares - k * mean * mean;
    const bool in = normaliser == "sparsemax"
                        ? 1 + k * z[n] > sum
                        : spread < 1 && mean - std::sqrt((1 - spread) / k) <= z[n] / 2;
    if (in) size = n + 1;
  }
  return size;
}

Row sparse(std::string_view normaliser, const Vector& z, Row row) {
  std::vector<Real> sorted;
  for (const Number& each : z) sorted.push_back(each.value);
  const size_t size = support_size(normaliser, sorted);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const Real last = sorted[size - 1];
  const bool halves = normaliser == "entmax15";
  Number sum(0), count(0), spread(0);
  for (const Number& each : z)
    if (each.value >= last) sum = sum + each, count = Number(count.value + 1);
  const Number mean = sum / count;
  for (const Number& each : z)
    if (each.value >= last) spread = spread + (each - mean) * (each - mean) * Number(0.25L);
  const Number threshold =
      halves ? mean * Number(0.5L) - sqrt((Number(1) - spread) / count) : mean - Number(1) / count;
  for (const Number& each : z) {
    const Number above = (halves ? each * Number(0.5L) : each) - threshold;
    row.weights.push_back(each.value < last ? Number(0) : halves ? above * above : above);
  }
  row.log_sum = halves ? threshold * Number(2) : threshold;
  return row;
}

Row normalised(std::string_view normaliser, const Vector& scores, const Number* sink, Real least) {
  Row row;
  row.top = sink ? sink->value : -infinity;
  for (const Number& s : scores) row.top = std::max(row.top, s.value);
  row.empty = row.top == -infinity;
  const bool sums = normaliser == "softmax" || normaliser == "temperature";
  Vector z;
  if (normaliser == "sigmoid" || normaliser == "none" || normaliser == "linear") {
    Number sum(0);
    for (const Number& s : scores) {
      const bool none = s.value == -infinity;
      row.weights.push_back(none ? Number(0) : normaliser == "sigmoid" ? sigmoid(s, least) : s);
      sum = sum + row.weights.back();
    }
    row.top = 0;
    if (normaliser != "linear") return row;
    row.empty = sum.value == 0;
    for (Number& w : row.weights) w = row.empty ? Number(0) : w / sum;
    if (!row.empty) row.log_sum = log(sum);
    return row;
  }
  if (row.empty) {
    row.weights.assign(scores.size(), Number(0));
    return row;
  }
  // Earlier rounding is in the noise of the scores, which are exact from here on.
  const auto moved = [&](const Number& s) {
    const Real y = s.value - row.top;
    return Number(y, std::abs(y), {{s.node, -1}, {1, 0}, {1, 0}});
  };
  for (const Number& s : scores) z.push_back(s.value == -infinity ? Number(-infinity) : moved(s));
  if (!sums) return sparse(normaliser, z, row);
  Number sum(0);
  for (const Number& each : z) {
    row.weights.push_back(each.value == -infinity ? Number(0) : exp(each, least));
    sum = sum + row.weights.back();
  }
  if (sink) sum = sum + exp(moved(*sink), least);
  for (Number& w : row.weights) w = w / sum;
  const Real rest = std::log(sum.value), lse = std::abs(row.top + rest);
  if (lse <= coarse_lse) row.blur = lse_roundings / later_roundings * lse;
  row.log_sum = function_of(sum, rest, 1 / sum.value, (1 + row.blur) / sum.value);
  return row;
}

// One evaluation with its derivatives; draw 0 is exact, other draws add possible rounding.
class Evaluation {
 public:
  Evaluation(const TapeProblem& problem, const Precision& precision, uint64_t draw)
      : problem_(problem), precision_(precision), draw_(draw) {
    for (const auto& [name, tensor] : problem.inputs) {
      const Tensor flat = tensor.to(at::kDouble).contiguous().view({-1});
      Array array{tensor.sizes().vec(), {}};
      for (int64_t n = 0; n < flat.numel(); ++n)
        array.numbers.push_back(Number::input(flat.data_ptr<double>()[n]));
      in_.emplace(name, std::move(array));
    }
    temperature_ = static_cast<Real>(Normaliser(problem.normaliser).options().temperature);
    name_ = Normaliser(problem.normaliser).row().name;
    const int64_t queries = in_.at("query").size(0);
    find_reach();
    for (int64_t i = 0; i < queries; ++i) run_row(i);
    const std::vector<Derivative> found = tape_.backward(seeds_);
    for (const auto& [name, array] : in_)
      for (const Number& number : array.numbers)
        gradients[name].push_back(found[static_cast<size_t>(number.node)]);
  }

  bool fits = true;
  std::vector<Derivative> context, lse;  // values and sizes
  std::vector<Real> weights;
  std::map<std::string, std::vector<Derivative>, std::less<>> gradients;

 private:
  void find_reach() {
    if (!is_additive(problem_.score)) return;
    const auto extend = [&](const Vector& x) {
      reach_.resize(x.size());
      for (size_t a = 0; a < x.size(); ++a) reach_[a] = std::max(reach_[a], std::abs(x[a].value));
    };
    const int64_t queries = in_.at("query").size(0), keys = in_.at("key").size(0);
    for (int64_t n = 0; n < std::max(queries, keys); ++n) {
      const Pair pair = pair_of(std::min(n, queries - 1), std::min(n, keys - 1));
      extend(mapped_query(problem_.score, pair));
      extend(mapped_key(problem_.score, pair));
    }
  }

  Pair pair_of(int64_t i, int64_t j) const {
    return {in_, precision_, draw_, i, j, previous_, total_, reach_};
  }

  Vector scores_of(int64_t i) {
    Vector scores;
    for (int64_t j = 0; j < in_.at("key").size(0); ++j) {
      const Pair pair = pair_of(i, j);
      Number s = score_of(problem_, pair, temperature_);
      // A bias of -inf is not an overflow.
      const bool none = s.value == -infinity;
      fits = fits && (none || s.size * roundings < precision_.largest);
      if (!none) s.value += noise(s, pair);
      s.size = std::abs(s.value);
      scores.push_back(s);
    }
    return scores;
  }

  void run_row(int64_t i) {
    const Vector scores = scores_of(i);
    Number sink;
    const bool has_sink = in_.contains("sink");
    if (has_sink) sink = in_.at("sink")(0) / Number(temperature_);
    const Real least = precision_.least / precision_.unit;
    const Row row = normalised(name_, scores, has_sink ? &sink : nullptr, least);
    // Running sums shift features; numbers far below the largest count as 0.
    if (name_ == "linear" && (row.empty || row.log_sum.value < -60)) fits = false;
    for (const Number& w : row.weights) weights.push_back(w.value);
    const Array& value = in_.at("value");
    const Vector again = weights_of_backward(row);
    for (int64_t e = 0; e < value.size(1); ++e) {
      Number read(0);
      Real size = 0;
      for (size_t j = 0; j < scores.size(); ++j) {
        const Number& v = value(static_cast<int64_t>(j), e);
        read = read + again[j] * v;
        size += (row.weights[j].size + least) * v.size;
      }
      context.push_back({read.value, size});
      seeds_.emplace_back(read, weight_of("context", context.size() - 1));
    }
    lse.push_back(
        row.empty ? Derivative{-infinity, 0}
                  : Derivative{row.top + row.log_sum.value, std::abs(row.top) + row.log_sum.size});
    if (!row.empty) seeds_.emplace_back(row.log_sum, weight_of("lse", lse.size() - 1));
    if (!score_row(problem_.score).map_past) return;
    for (size_t j = 0; j < scores.size(); ++j) {
      if (total_.size() == j)
        total_.push_back(row.weights[j]);
      else
        total_[j] = total_[j] + row.weights[j];
    }
    previous_ = row.weights;
  }

  // The same weights with a larger error.
  Vector weights_of_backward(const Row& row) const {
    Vector weights = row.weights;
    for (Number& w : weights) w.size += row.blur * std::abs(w.value);
    return weights;
  }

  Real weight_of(const char* name, size_t n) const {
    return problem_.weights.find(name)->second.view({-1})[static_cast<int64_t>(n)].item<double>();
  }

  Tape tape_;
  const TapeProblem& problem_;
  const Precision& precision_;
  uint64_t draw_;
  Arrays in_;
  Real temperature_ = 1;
  std::string name_;
  Vector previous_, total_;
  std::vector<Real> reach_;
  std::vector<std::pair<Number, Real>> seeds_;
};

// Rounding error of a result of this size.
Real error_of(const Derivative& x, const Precision& precision) {
  return later_roundings * (precision.unit * x.size + precision.least);
}

std::vector<Known> known(const std::vector<Derivative>& exact, const Precision& precision) {
  std::vector<Known> result;
  for (const Derivative& each : exact) result.push_back({each.value, error_of(each, precision)});
  return result;
}

// Includes the differences and errors of every draw, because a draw may move a key into the
// support.
void widen(std::vector<Known>& known, const std::vector<Derivative>& moved,
           const Precision& precision) {
  for (size_t n = 0; n < known.size(); ++n) {
    Real& error = known[n].error;
    const Real move =
        known[n].value == moved[n].value ? 0 : std::abs(moved[n].value - known[n].value);
    error = std::max(error, error_of(moved[n], precision)) + move;
  }
}

// Returns whether rounding changes no weight by more than a tenth of the largest.
bool tells_weights(const std::vector<Real>& exact, const std::vector<Real>& moved) {
  Real largest = 0, gap = 0;
  for (size_t n = 0; n < exact.size(); ++n) {
    largest = std::max(largest, std::abs(exact[n]));
    gap = std::max(gap, std::abs(exact[n] - moved[n]));
  }
  return gap <= largest / 10;
}

}  // namespace

Precision precision_of(at::ScalarType dtype) {
  if (dtype == at::kFloat)
    return {dtype, 0x1p-24L, std::numeric_limits<float>::min(), std::numeric_limits<float>::max()};
  return {dtype, 0x1p-53L, std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
}

int64_t mapped_depth(std::string_view score, int64_t depth, int64_t keys) {
  return score == "linear" ? 2 : score == "location" ? keys : depth;
}

TapeResult attend_on_tape(const TapeProblem& problem, const Precision& precision) {
  TapeResult result;
  const Evaluation exact(problem, precision, 0);
  result.fits = exact.fits;
  if (!result.fits) return result;
  result.context = known(exact.context, precision);
  result.lse = known(exact.lse, precision);
  for (const auto& [name, gradient] : exact.gradients)
    result.gradients.emplace(name, known(gradient, precision));
  for (uint64_t draw = 1; draw <= draws; ++draw) {
    const Evaluation moved(problem, precision, draw);
    widen(result.context, moved.context, precision);
    widen(result.lse, moved.lse, precision);
    for (auto& [name, gradient] : result.gradients)
      widen(gradient, moved.gradients.at(name), precision);
    result.known = result.known && tells_weights(exact.weights, moved.weights);
  }
  return result;
}

}  // namespace attend::reference
