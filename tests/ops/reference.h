#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/ops/attention.h"

// The operator as scalar loops, directly from the formulas of tape_scores.h, without the library's
// arithmetic.
namespace attend::reference {

// Sizes of one attention problem. make_problem sets depths that depend on other sizes.
struct Sizes {
  int64_t batch = 1, heads = 1, key_heads = 1, queries = 3, keys = 5;
  int64_t query_depth = 4, key_depth = 3, attention_depth = 6, value_depth = 2;
};

enum class Given { all, required };

struct Problem {
  at::Tensor query, key, value;  // with four axes
  Score score;
};

// Random inputs and parameters in the shapes of the row: all parameters or only the required ones.
// With `parameter_heads` each has an axis of heads.
Problem make_problem(const ScoreRow& row, Sizes sizes, Given given, bool parameter_heads,
                     at::ScalarType dtype, uint64_t seed);

// A scope with a second implementation of its rule.
struct ScopeCase {
  std::string name;
  Scope scope;
  std::function<bool(int64_t batch, int64_t head, int64_t query, int64_t key)> allows;
};

// Every scope and intersections for these sizes; several have rows without keys. Queries of three
// axes have one head.
std::vector<ScopeCase> scope_cases(const Sizes& sizes, int64_t query_axes = 4);

struct Expected {
  at::Tensor scores, weights, context, lse;  // float64, four axes (lse three)
  double score_terms = 0;                    // largest sum of magnitudes in one score
};

Expected attend_by_loops(const Problem& problem, const ScopeCase& scope);

// The paths that support a problem: composed, and fused if possible.
std::vector<Path> paths_of(const Problem& problem, const AttentionSpec& spec);

// Normalisers with kernels: functions of only the row's scores. Without "linear", which requires
// positive scores and is tested in linear_test.cpp.
std::vector<NormaliserRow> fused_normalisers();

// Valid names for parametrised tests.
std::string test_name(std::string text);

}  // namespace attend::reference
