#include "attend/kernels/selftest.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <type_traits>

#include "attend/kernels/cpu/naive-inl.h"
#include "attend/kernels/cpu/selftest-cases-inl.h"

namespace attend::kernels {
namespace {

// Arithmetic of the reference.
template <class T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <class S>
inline constexpr std::string_view kStorageName = std::is_same_v<S, float>      ? "float"
                                                 : std::is_same_v<S, double>   ? "double"
                                                 : std::is_same_v<S, BFloat16> ? "bfloat16"
                                                                               : "float16";

// Half the spacing of numbers near 1: the error of storing a number.
template <class S>
inline constexpr double kStorageError = std::is_same_v<S, BFloat16>  ? 0x1p-8
                                        : std::is_same_v<S, Float16> ? 0x1p-11
                                                                     : 0;

// Outputs of the kernels, in the order of NaiveResults.
template <class S>
struct KernelResults {
  using T = Compute<S>;
  std::vector<S> context, query, key, value;
  std::vector<T> lse, vector, dense, slopes, sinks, relative, centres, widths, alphas;
  std::vector<double> query_sums, key_sums;
  std::vector<T> unrounded;  // if S has 16 bits
  std::vector<T> query_products, key_products;
};

// Arrays start as NaN, which reveals unwritten numbers.
template <class S>
std::vector<S> unwritten(size_t count) {
  return std::vector<S>(count, stored<S>(std::numeric_limits<double>::quiet_NaN()));
}

template <class T>
T* wanted(std::vector<T>& gradient) {
  return gradient.empty() ? nullptr : gradient.data();
}

template <class S>
struct Question {
  Problem<S> problem;
  View<const S> grad_context;
  const Compute<S>* grad_lse;
};

template <class S, class T>
KernelResults<S> run_kernels(const Question<S>& question, const NaiveResults<T>& like,
                             const SelftestPasses& passes) {
  const Shape& s = question.problem.shape;
  KernelResults<S> r{unwritten<S>(like.context.size()),
                     unwritten<S>(like.query.size()),
                     unwritten<S>(like.key.size()),
                     unwritten<S>(like.value.size()),
                     unwritten<T>(like.lse.size()),
                     unwritten<T>(like.vector.size()),
                     unwritten<T>(like.dense.size()),
                     unwritten<T>(like.slopes.size()),
                     unwritten<T>(like.sinks.size()),
                     unwritten<T>(like.relative.size()),
                     unwritten<T>(like.centres.size()),
                     unwritten<T>(like.widths.size()),
                     unwritten<T>(like.alphas.size()),
                     unwritten<double>(like.query_sums.size()),
                     unwritten<double>(like.key_sums.size()),
                     unwritten<T>(kIsHalf<S> ? like.context.size() : 0),
                     unwritten<T>(like.query_products.size()),
                     unwritten<T>(like.key_products.size())};
  const auto context_rows = [&](auto* data) {
    return contiguous(data, s.heads, s.queries, s.value_depth);
  };
  const Result<S> result{context_rows(r.context.data()), r.lse.data(), wanted(r.unrounded)};
  const T* exact = nullptr;
  if constexpr (kIsHalf<S>) {
    exact = r.unrounded.data();
  } else {
    exact = r.context.data();
  }
  const Upstream<S> upstream{context_rows(exact), r.lse.data(), question.grad_context,
                             question.grad_lse};
  const Gradients<S> gradients{contiguous(r.query.data(), s.heads, s.queries, s.depth),
                               contiguous(r.key.data(), s.key_heads, s.keys, s.depth),
                               contiguous(r.value.data(), s.key_heads, s.keys, s.value_depth),
                               wanted(r.vector),
                               wanted(r.dense),
                               wanted(r.slopes),
                               wanted(r.sinks),
                               wanted(r.relative),
                               wanted(r.centres),
                               wanted(r.widths),
                               nullptr,
                               wanted(r.query_sums),
                               wanted(r.key_sums),
                               wanted(r.alphas),
                               wanted(r.query_products),
                               wanted(r.key_products)};
  if constexpr (std::is_same_v<S, float>) {
    passes.forward(question.problem, result, 1);
    passes.backward(question.problem, upstream, gradients, 1);
  } else {
    attention_forward(question.problem, result, 1);
    attention_backward(question.problem, upstream, gradients, 1);
  }
  return r;
}

template <class T>
struct Answers {
  NaiveResults<Wider<T>> reference;
  NaiveResults<T> rounded;  // the same formulas in the kernel's arithmetic, or about as exact
};

// Compares arrays one after another; keeps the result nearest to its bound.
class Comparison {
 public:
  // share: largest error / bound so far.
  Comparison(SelftestFinding& finding, double& share, std::string_view name, double storage_error)
      : finding_(finding), share_(share), name_(name), storage_error_(storage_error) {}

  // factor: multiple of the formulas' error in the kernel's arithmetic. terms: terms of the
  // numbers, if much larger than the numbers.
  template <class S, class T>
  void array(std::string_view array, double factor, const std::vector<S>& got,
             const std::vector<T>& rounded, const std::vector<Wider<T>>& reference,
             const std::vector<Wider<T>>& terms = {}) {
    double error = 0, rounding = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      error = std::max(error, distance(number(got[i]), reference[i]));
      rounding = std::max(rounding, distance(rounded[i], reference[i]));
    }
    const double size = largest(terms.empty() ? reference : terms);
    // Half the spacing of float16 numbers below the smallest normal one.
    constexpr double kSubnormal = std::is_same_v<S, Float16> ? 0x1p-25 : 0;
    keep(array, error,
         factor * rounding + kSubnormal +
             (kUnits * std::numeric_limits<T>::epsilon() + kStored * storage_error_) * size);
  }

  void keep(std::string_view array, double error, double bound) {
    ++finding_.results;
    if (error > bound) ++finding_.failures;
    const double share = error > 0 ? error / bound : 0;
    if (share <= share_) return;
    share_ = share;
    finding_.error = error;
    finding_.bound = bound;
    finding_.result = fmt::format("{}: {}", name_, array);
  }

 private:
  // A weight is recomputed as exp(s - lse) of numbers up to about 8. Their rounding errors in the
  // exponent become the relative error of the weight, even if the formulas are exact.
  static constexpr double kUnits = 4 * 8;

  // Backward reads the rounded context and writes rounded gradients.
  static constexpr double kStored = 4;

  template <class T>
  static double largest(const std::vector<T>& numbers) {
    T maximum = 0;
    for (const T x : numbers) {
      if (std::isfinite(x)) maximum = std::max(maximum, std::abs(x));
    }
    return static_cast<double>(maximum);
  }

  // Infinite if only one is finite, or either is NaN.
  template <class T, class U>
  static double distance(T got, U want) {
    if (got == want) return 0;
    const auto away = static_cast<double>(std::abs(static_cast<U>(got) - want));
    return std::isfinite(away) ? away : std::numeric_limits<double>::infinity();
  }

  SelftestFinding& finding_;
  double& share_;
  std::string_view name_;
  double storage_error_;
};

template <class S>
void compare(Comparison& comparison, const Problem<S>& problem, const KernelResults<S>& got,
             const Answers<Compute<S>>& answers) {
  const auto& rounded = answers.rounded;
  const auto& want = answers.reference;
  comparison.array("context", 2, got.context, rounded.context, want.context);
  // Other normalisers have lse 0.
  if (problem.normaliser != Normaliser::sigmoid && problem.normaliser != Normaliser::none) {
    comparison.array("lse", 2, got.lse, rounded.lse, want.lse);
  }
  comparison.array("gradient of query", 3, got.query, rounded.query, want.query);
  comparison.array("gradient of key", 3, got.key, rounded.key, want.key);
  comparison.array("gradient of value", 3, got.value, rounded.value, want.value);
  comparison.array("gradient of vector", 3, got.vector, rounded.vector, want.vector);
  comparison.array("gradient of dense bias", 3, got.dense, rounded.dense, want.dense);
  comparison.array("gradient of slopes", 3, got.slopes, rounded.slopes, want.slopes,
                   want.slope_terms);
  comparison.array("gradient of sinks", 3, got.sinks, rounded.sinks, want.sinks, want.sink_terms);
  comparison.array("gradient of relative", 3, got.relative, rounded.relative, want.relative);
  comparison.array("gradient of centres", 3, got.centres, rounded.centres, want.centres);
  comparison.array("gradient of widths", 3, got.widths, rounded.widths, want.widths);
  comparison.array("gradient of query sums", 3, got.query_sums, rounded.query_sums, want.query_sums,
                   want.query_sum_terms);
  comparison.array("gradient of key sums", 3, got.key_sums, rounded.key_sums, want.key_sums,
                   want.key_sum_terms);
  comparison.array("gradient of query products", 3, got.query_products, rounded.query_products,
                   want.query_products);
  comparison.array("gradient of key products", 3, got.key_products, rounded.key_products,
                   want.key_products);
  comparison.array("gradient of alphas", 3, got.alphas, rounded.alphas, want.alphas,
                   want.alpha_terms);
}

// Zeroes the upstream gradient of rows in which rounding decides whether a key has weight. If it
// decides which keys top_k keeps, every key is kept.
template <class S>
void leave_out_undecided(SelftestInputs<S>& in, Question<S>& question) {
  using T = Compute<S>;
  const Normaliser normaliser = question.problem.normaliser;
  if (normaliser != Normaliser::sparsemax && normaliser != Normaliser::entmax &&
      normaliser != Normaliser::softpick && normaliser != Normaliser::top_k)
    return;
  const auto found =
      NaiveAttention<Wider<T>, S>(question.problem, question.grad_context, nullptr).run();
  const double least = 1000 * std::numeric_limits<T>::epsilon();
  const int64_t depth = question.problem.shape.value_depth;
  for (size_t row = 0; row < found.margin.size(); ++row) {
    if (found.margin[row] > least * std::max<Wider<T>>(1, std::abs(found.lse[row]))) continue;
    if (normaliser == Normaliser::top_k) question.problem.top = question.problem.shape.keys;
    std::fill_n(in.grad_context.begin() + static_cast<int64_t>(row) * depth, depth, stored<S>(0));
  }
}

bool differentiates_lse(Normaliser normaliser) {
  return normaliser == Normaliser::softmax || normaliser == Normaliser::entmax ||
         normaliser == Normaliser::softpick || normaliser == Normaliser::top_k;
}

struct Choices {
  const FamilyChoice& family;
  const NormaliserChoice& normaliser;
  const ScopeChoice& scope;
  int64_t turn;
};

// Varies between turns, and between consecutive turns of one scope, six turns apart.
template <class S>
double magnitude_of(int64_t turn) {
  return magnitudes<S>()[(turn + turn / 6) % 3];
}

class EveryTarget {
 public:
  explicit EveryTarget(const SelftestPasses& passes) : passes_(passes) {
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      targets_.push_back(target);
      shares_.push_back(0);
      findings.push_back({.target = hwy::TargetName(target), .result = {}});
    }
  }
  ~EveryTarget() { hwy::SetSupportedTargetsForTest(0); }
  EveryTarget(const EveryTarget&) = delete;
  EveryTarget& operator=(const EveryTarget&) = delete;

  // Every turn has another bias and, after all biases, another shape.
  template <class S>
  void check(const Choices& choices) {
    const auto& [family, normaliser, scope, turn] = choices;
    const auto count = static_cast<int64_t>(biases<S>().size());
    const BiasChoice<S>& bias = biases<S>()[turn % count];
    const Shape& shape = kShapes[turn / count % kShapes.size()];
    const double magnitude = magnitude_of<S>(turn);
    SelftestInputs<S> in = random_inputs<S>(shape, turn, magnitude);
    Question<S> question{
        make_problem(in, shape, family, normaliser),
        contiguous<const S>(in.grad_context.data(), shape.heads, shape.queries, shape.value_depth),
        differentiates_lse(normaliser.normaliser) ? in.grad_lse.data() : nullptr};
    question.problem.scope = scope.scope;
    bias.apply(in, question.problem);
    leave_out_undecided(in, question);
    std::string name = fmt::format("{}, {}, {}, {}, {}", kStorageName<S>, family.name,
                                   normaliser.name, scope.name, bias.name);
    if (magnitude != 1) name += fmt::format(", inputs of {:g}", magnitude);
    check_targets(question, magnitude, name);
  }

  std::vector<SelftestFinding> findings;

 private:
  template <class S>
  void check_targets(const Question<S>& question, double magnitude, const std::string& name) {
    using T = Compute<S>;
    // The formulas may be exact by chance if their terms are much larger or smaller than the sums.
    constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;
    const Noise<T> noise = magnitude == 1 ? Noise<T>() : Noise<T>(kUnit, 1);
    const auto& [problem, grad_context, grad_lse] = question;
    const Answers<T> answers{NaiveAttention<Wider<T>, S>(problem, grad_context, grad_lse).run(),
                             NaiveAttention<T, S>(problem, grad_context, grad_lse, noise).run()};
    for (size_t n = 0; n < targets_.size(); ++n) {
      hwy::SetSupportedTargetsForTest(targets_[n]);
      Comparison comparison(findings[n], shares_[n], name, kStorageError<S>);
      try {
        compare(comparison, question.problem, run_kernels(question, answers.rounded, passes_),
                answers);
      } catch (const std::exception& error) {
        comparison.keep(error.what(), std::numeric_limits<double>::infinity(), 0);
      }
    }
  }

  const SelftestPasses& passes_;
  std::vector<int64_t> targets_;
  std::vector<double> shares_;
};

}  // namespace

std::vector<SelftestFinding> selftest(int64_t rounds, const SelftestPasses& passes) {
  EveryTarget targets(passes);
  int64_t turn = 0;
  // Later normalisers come last: the turns of the others, and so their inputs, stay the same.
  for (const auto normalisers : kNormaliserGroups)
    for (int64_t round = 0; round < rounds; ++round, ++turn)  // else even scopes meet even biases
      for (const FamilyChoice& family : kFamilies)
        for (const NormaliserChoice& normaliser : normalisers)
          for (const ScopeChoice& scope : scopes()) {
            const Choices choices{family, normaliser, scope, turn++};
            targets.check<float>(choices);
            if (round % 3 == 0) targets.check<double>(choices);
            if (round % 3 == 1) targets.check<BFloat16>(choices);
            if (round % 3 == 2) targets.check<Float16>(choices);
          }
  return targets.findings;
}

}  // namespace attend::kernels
