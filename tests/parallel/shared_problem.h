#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attend/parallel/distributed_attention.h"
#include "tests/ops/reference.h"
#include "tests/support/thread_world.h"

namespace attend {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// A problem for one process and for several.
struct SharedProblem {
  Tensor query, key, value;  // the whole sequences
  Tensors tensors;           // tensors of the spec
  std::function<AttentionSpec(const Tensors&)> make;
};

struct Outcome {
  Tensor context, lse;
  Tensors gradients;  // query, key, value and the tensors; undefined gradients are 0
};

inline Tensors leaves_of(const Tensors& tensors) {
  Tensors leaves;
  for (const Tensor& x : tensors)
    leaves.push_back(x.detach().clone().requires_grad_(at::isFloatingType(x.scalar_type())));
  return leaves;
}

// A scalar that depends on every number of the result, with different weights per position.
inline Tensor loss_of(const AttentionResult& result, const Tensor& context_weights,
                      const Tensor& lse_weights) {
  const Tensor lse =
      result.lse.masked_fill(result.lse == -std::numeric_limits<double>::infinity(), 0.0);
  return (result.context * context_weights).sum() + (lse * lse_weights).sum();
}

inline Tensor weights_like(const Tensor& x) {
  return at::arange(x.numel(), at::kDouble).mul(0.7).add(1).sin().view(x.sizes()).to(x.options());
}

inline Outcome outcome_of(const AttentionResult& result, const Tensor& loss,
                          const Tensors& leaves) {
  if (loss.requires_grad()) loss.backward();
  Outcome outcome = {result.context.detach(), result.lse.detach(), {}};
  for (const Tensor& x : leaves)
    outcome.gradients.push_back(x.grad().defined() ? x.grad() : at::zeros_like(x));
  return outcome;
}

inline Outcome by_one(const SharedProblem& problem) {
  Tensors leaves = {problem.query, problem.key, problem.value};
  leaves.insert(leaves.end(), problem.tensors.begin(), problem.tensors.end());
  leaves = leaves_of(leaves);
  const AttentionResult result =
      attention(leaves[0], leaves[1], leaves[2], problem.make({leaves.begin() + 3, leaves.end()}));
  return outcome_of(result, loss_of(result, weights_like(result.context), weights_like(result.lse)),
                    leaves);
}

// The part of one rank, for a loss that is summed over the ranks.
inline Outcome by_rank(const SharedProblem& problem, Communicator& world,
                       const SharedSequences& shared) {
  const auto rank = static_cast<size_t>(world.rank());
  const Runs& queries = shared.queries[rank];
  const Runs& keys = shared.keys.empty() ? queries : shared.keys[rank];
  Tensors leaves = {at_runs(problem.query, queries, -2), at_runs(problem.key, keys, -2),
                    at_runs(problem.value, keys, -2)};
  leaves.insert(leaves.end(), problem.tensors.begin(), problem.tensors.end());
  leaves = leaves_of(leaves);
  const AttentionResult result =
      distributed_attention(world, leaves[0], leaves[1], leaves[2],
                            problem.make({leaves.begin() + 3, leaves.end()}), shared);
  auto shape = problem.query.sizes().vec();
  const Tensor of_lse = at::empty({}, result.lse.options())
                            .expand(problem.query.sizes().slice(0, problem.query.dim() - 1));
  shape.back() = problem.value.size(-1);
  const Tensor of_context = at::empty({}, result.context.options()).expand(shape);
  return outcome_of(result,
                    loss_of(result, at_runs(weights_like(of_context), queries, -2),
                            at_runs(weights_like(of_lse), queries, -1)),
                    leaves);
}

inline double relative_error(const Tensor& got, const Tensor& wanted) {
  const Tensor finite = wanted.to(at::kDouble).masked_fill(wanted.isinf(), 0.0);
  const Tensor other = got.to(at::kDouble).masked_fill(got.isinf(), 0.0);
  if (!at::equal(got.isinf(), wanted.isinf())) return std::numeric_limits<double>::infinity();
  const double size = finite.norm().item<double>();
  const double error = (other - finite).norm().item<double>();
  return error == 0 ? 0 : error / size;
}

// Result of one process with its errors.
struct Reference {
  Outcome one;
  // Relative errors of the results in results_of(), the largest of problems almost like this one.
  std::vector<double> errors;
  double largest_lse = 0;

  explicit Reference(const SharedProblem& problem);
};

inline Tensors results_of(const Outcome& outcome) {
  Tensors results = {outcome.context, outcome.lse};
  results.insert(results.end(), outcome.gradients.begin(), outcome.gradients.end());
  return results;
}

inline std::vector<double> errors_of(const SharedProblem& problem, const Outcome& outcome) {
  SharedProblem exact = problem;
  for (Tensor* x : {&exact.query, &exact.key, &exact.value}) *x = x->to(at::kDouble);
  for (Tensor& x : exact.tensors) x = x.to(at::kDouble);
  const Tensors found = results_of(outcome), wanted = results_of(by_one(exact));
  std::vector<double> errors;
  for (size_t i = 0; i < found.size(); ++i) errors.push_back(relative_error(found[i], wanted[i]));
  return errors;
}

// One problem's roundings may cancel by luck, so problems that differ a little are measured too.
inline Reference::Reference(const SharedProblem& problem)
    : one(by_one(problem)), errors(errors_of(problem, one)) {
  for (const double factor : {0.998, 0.999, 1.001, 1.002}) {
    SharedProblem other = problem;
    other.query = problem.query * factor;
    const std::vector<double> found = errors_of(other, by_one(other));
    for (size_t i = 0; i < errors.size(); ++i) errors[i] = std::max(errors[i], found[i]);
  }
  if (one.lse.numel() > 0)
    largest_lse = one.lse.masked_fill(one.lse.isinf(), 0.0).abs().max().item<double>();
}

// Computes the problem in several processes and compares with the result of one. If one process has
// larger errors than the bar, for example by cancellation, several may have three times its error
// on the other side. In sums of exponentials a few terms dominate, and their roundings differ. The
// ring weighs shares by exp of differences of lse, which have errors of eps |lse|.
inline void expect_as_one(const SharedProblem& problem, const Reference& reference,
                          const SharedSequences& shared, double bar) {
  std::vector<Outcome> ranks(shared.queries.size());
  ThreadWorld(static_cast<int64_t>(ranks.size())).run([&](Communicator& world) {
    ranks[static_cast<size_t>(world.rank())] = by_rank(problem, world, shared);
  });
  const Sharding& keys = shared.keys.empty() ? shared.queries : shared.keys;
  const Tensors wanted = results_of(reference.one);
  const double eps = wanted[1].scalar_type() == at::kDouble ? 0x1p-53 : 0x1p-24;
  const double rounding = shared.exchange == Exchange::gather ? 0 : eps * reference.largest_lse;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Tensors parts;
    for (const Outcome& rank : ranks) parts.push_back(results_of(rank)[i]);
    const char* const names[] = {"context", "lse", "query", "key", "value"};
    if (i >= 5) {
      for (const Tensor& part : parts) EXPECT_TRUE(at::equal(part, parts[0])) << "ranks differ";
    }
    const bool of_keys = i == 3 || i == 4;
    const Tensor got =
        i < 5 ? joined(parts, of_keys ? keys : shared.queries, i == 1 ? -1 : -2) : parts[0];
    EXPECT_LE(relative_error(got, wanted[i]), bar + 4 * reference.errors[i] + 2 * rounding)
        << (i < 5 ? names[i] : "a tensor of the spec");
  }
}

// Shardings of one sequence over `ranks` ranks: contiguous, zigzag, and uneven. With three or more
// ranks the uneven one leaves a rank empty.
inline std::vector<Sharding> shardings_of(int64_t length, int64_t ranks) {
  std::vector<Sharding> shardings = {contiguous_sharding(length, ranks),
                                     zigzag_sharding(length, ranks)};
  Sharding uneven(static_cast<size_t>(ranks));
  int64_t next = length;
  for (int64_t r = 0; r < ranks; ++r) {
    if (r == 1 && ranks > 2) continue;
    const int64_t count = r + 1 == ranks ? next : std::min(next, length / ranks + 1 + r % 2);
    next -= count;
    uneven[static_cast<size_t>(r)] = {{next, count}};
  }
  shardings.push_back(uneven);
  return shardings;
}

}  // namespace attend
