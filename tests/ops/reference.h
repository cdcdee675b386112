#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/ops/attention.h"

// The operator as scalar loops straight from the formulas, in double: nothing here calls the
// library's arithmetic.
namespace attend::reference {

// Sizes of one attention problem. Depths that a score fixes by others are set by make_problem.
struct Sizes {
  int64_t batch = 1, heads = 1, key_heads = 1, queries = 3, keys = 5;
  int64_t query_depth = 4, key_depth = 3, attention_depth = 6, value_depth = 2;
};

enum class Given { all, required };

struct Problem {
  at::Tensor query, key, value;  // four axes
  Score score;
};

// Random inputs, and parameters made from the axes of the row: all of them or only the required
// ones, each with an axis of heads when asked.
Problem make_problem(const ScoreRow& row, Sizes sizes, Given given, bool parameter_heads,
                     at::ScalarType dtype, uint64_t seed);

// A scope with its rule, written out a second time.
struct ScopeCase {
  std::string name;
  Scope scope;
  std::function<bool(int64_t batch, int64_t head, int64_t query, int64_t key)> allows;
};

// Every scope and intersections of them, for these sizes; several leave rows with no key. Queries
// of three axes have one head.
std::vector<ScopeCase> scope_cases(const Sizes& sizes, int64_t query_axes = 4);

struct Expected {
  at::Tensor scores, weights, context, lse;  // float64, four axes (lse three)
  double score_terms = 0;  // the largest sum of magnitudes that went into one score
};

// Fails the test when the row has no loop.
Expected attend_by_loops(const Problem& problem, const ScopeCase& scope);

// The paths that take such a problem: composed, and fused where it fits.
std::vector<Path> paths_of(const Problem& problem, const AttentionSpec& spec);

// The rows of the normalisers that the kernels have: functions of the row's scores alone. Without
// linear, which takes positive scores alone and is tested with these in linear_test.cpp.
std::vector<NormaliserRow> fused_normalisers();

// Names for parametrised tests.
std::string test_name(std::string text);

}  // namespace attend::reference
