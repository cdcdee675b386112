#include "attend/cli/worked_example.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace attend {
namespace {

using at::Tensor;

// Larger matrices show this many lines at each end.
constexpr int64_t longest = 8;
constexpr int64_t at_each_end = 3;

// The positions shown of `length`; -1 stands for those left out.
std::vector<int64_t> shown_positions(int64_t length) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < length; ++i) {
    if (length <= longest || i < at_each_end || i >= length - at_each_end) positions.push_back(i);
    if (length > longest && i == at_each_end) positions.push_back(-1);
  }
  return positions;
}

bool needs_exponents(const Tensor& matrix) {
  const Tensor sizes = matrix.abs();
  const Tensor finite = sizes.masked_select(sizes.isfinite().logical_and(sizes > 0));
  if (finite.numel() == 0) return false;
  return finite.max().item<double>() >= 1e5 || finite.max().item<double>() < 1e-3;
}

std::vector<std::vector<std::string>> cells(const Tensor& matrix) {
  const bool exponents = needs_exponents(matrix);
  const auto entries = matrix.accessor<double, 2>();
  std::vector<std::vector<std::string>> rows;
  for (const int64_t i : shown_positions(matrix.size(0))) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const int64_t j : shown_positions(matrix.size(1))) {
      if (i < 0 || j < 0)
        row.push_back("...");
      else
        row.push_back(exponents ? fmt::format("{:.3e}", entries[i][j])
                                : fmt::format("{:.4f}", entries[i][j]));
    }
  }
  return rows;
}

// A line of name, shape and formula, then the rows with their columns aligned.
std::string step(const std::string& name, const Tensor& tensor, const std::string& formula = "") {
  std::string text = fmt::format("{} [{}]{}{}\n", name, fmt::join(tensor.sizes(), ", "),
                                 formula.empty() ? "" : ": ", formula);
  const Tensor numbers = tensor.detach().to(at::kDouble);
  const auto rows = cells(numbers.dim() == 2 ? numbers : numbers.reshape({1, -1}));
  size_t width = 0;
  for (const auto& row : rows)
    for (const std::string& cell : row) width = std::max(width, cell.size());
  for (const auto& row : rows) {
    text += " ";
    for (const std::string& cell : row) text += fmt::format("  {:>{}}", cell, width);
    text += '\n';
  }
  if (tensor.numel() == 0) text += "  (empty)\n";
  return text + '\n';
}

Tensor first_matrix(const Tensor& x) {
  Tensor matrix = x;
  while (matrix.dim() > 2) matrix = matrix[0];
  return matrix;
}

Score score_of_first_head(const Score& score) {
  if (!score.heads()) return score;
  Parameters parameters;
  for (const ParameterRow& row : score.row().parameters) {
    const auto found = score.parameters().find(row.name);
    if (found == score.parameters().end()) continue;
    const bool has_heads = found->second.dim() > static_cast<int64_t>(row.shape.size());
    parameters.emplace(row.name, has_heads ? found->second[0] : found->second);
  }
  return Score(score.row().name, std::move(parameters));
}

Scope scope_of_first_head(const Scope& scope) {
  Scope first = scope;
  for (Clause& clause : first.any_of) {
    for (Condition& condition : clause) {
      if (auto* lengths = std::get_if<KeyLengths>(&condition))
        lengths->lengths = lengths->lengths.narrow(0, 0, 1);
      if (auto* dense = std::get_if<DenseMask>(&condition)) dense->mask = first_matrix(dense->mask);
    }
  }
  return first;
}

// The first head of the first batch element, of two axes.
ComputeProblem first_of(const ComputeProblem& problem) {
  ComputeProblem first = problem;
  first.query = first_matrix(problem.query).to(at::kDouble);
  first.key = first_matrix(problem.key).to(at::kDouble);
  first.value = first_matrix(problem.value).to(at::kDouble);
  const Score score = score_of_first_head(problem.spec.score);
  Parameters parameters;
  for (const auto& [name, tensor] : score.parameters())
    parameters.emplace(name, tensor.to(at::kDouble));
  first.spec.score = Score(score.row().name, std::move(parameters));
  first.spec.scope = scope_of_first_head(problem.spec.scope);
  return first;
}

std::string heading(const ComputeProblem& problem) {
  const ScoreRow& row = problem.spec.score.row();
  std::string text = fmt::format("score {}: {}   ({})\n", row.name, row.formula, row.source);
  const auto sizes = problem.query.sizes();
  if (sizes.size() == 3) text += fmt::format("batch element 1 of {}\n", sizes[0]);
  if (sizes.size() == 4)
    text += fmt::format("batch element 1 of {}, head 1 of {}\n", sizes[0], sizes[1]);
  return text + '\n';
}

const char* pairwise_formula(const ScoreRow& row, bool query_is_mapped, bool key_is_mapped) {
  switch (row.family) {
    case Family::dot:
      if (query_is_mapped) return key_is_mapped ? "q'_i . k'_j" : "q'_i . k_j";
      return key_is_mapped ? "q_i . k'_j" : "q_i . k_j";
    case Family::additive:
      switch (row.activation) {
        case Activation::tanh:
          return "sum_a v_a tanh(q'_ia + k'_ja)";
        case Activation::sigmoid:
          return "sum_a v_a sigmoid(q'_ia + k'_ja)";
        case Activation::relu:
          return "sum_a v_a max(0, q'_ia + k'_ja)";
        case Activation::leaky_relu:
          return "sum_a v_a leaky_relu(q'_ia + k'_ja)";
      }
      return "";
    case Family::squared_distance:
      return "-sum_a (q_ia - k_ja)^2";
    case Family::absolute_distance:
      return "-sum_a |q_ia - k_ja|";
    case Family::location:
      return "q'_ij";
  }
  return "";
}

// From queries and keys to the scores before the scope.
std::string score_steps(const ComputeProblem& problem) {
  const Score& score = problem.spec.score;
  if (score.row().name == "scaled_dot") {
    const Tensor products = at::matmul(problem.query, problem.key.transpose(0, 1));
    const int64_t depth = problem.query.size(1);
    return step("Scores S = Q K^T", products, "s_ij = q_i . k_j") +
           step(fmt::format("Scaled scores S / sqrt(D), D = {},", depth),
                attention_scores(problem.query, problem.key, {.score = score}),
                fmt::format("s_ij = q_i . k_j / {:.4f}", std::sqrt(static_cast<double>(depth))));
  }
  std::string text;
  for (const auto& [name, tensor] : score.parameters()) text += step("Parameter " + name, tensor);
  const Tensor query = score.map_query(problem.query), key = score.map_key(problem.key);
  const bool may_differ =
      score.row().family == Family::additive || score.row().family == Family::location;
  const bool query_is_mapped = may_differ || !query.equal(problem.query);
  const bool key_is_mapped = may_differ || !key.equal(problem.key);
  if (query_is_mapped) text += step("Mapped queries Q'", query);
  if (key_is_mapped && score.row().family != Family::location) text += step("Mapped keys K'", key);
  if (score.row().map_past)
    return text + step("Scores S, query after query,",
                       attention_scores(problem.query, problem.key, problem.spec),
                       std::string(score.row().formula));
  const char* formula = pairwise_formula(score.row(), query_is_mapped, key_is_mapped);
  return text +
         step("Scores S", pairwise_scores(score, query, key), fmt::format("s_ij = {}", formula));
}

}  // namespace

std::string worked_example(const ComputeProblem& problem) {
  const bool is_empty = problem.query.numel() == 0 && problem.query.dim() > 2 &&
                        (problem.query.size(0) == 0 || problem.query.size(1) == 0);
  if (is_empty) return heading(problem) + "There is nothing to show: the batch is empty.\n";
  const ComputeProblem first = first_of(problem);
  const auto result = attention(first.query, first.key, first.value, first.spec);
  std::string text = heading(problem);
  text += step("Queries Q", first.query);
  text += step("Keys K", first.key);
  text += step("Values V", first.value);
  text += score_steps(first);
  if (!first.spec.scope.any_of.empty())
    text += step("Scores in scope", attention_scores(first.query, first.key, first.spec),
                 "-inf for the keys out of scope");
  text += step("Weights W", attention_weights(first.query, first.key, result.lse, first.spec),
               "w_ij = exp(s_ij) / sum_j exp(s_ij), so each row sums to 1");
  text += step("Context C = W V", result.context, "c_i = sum_j w_ij v_j");
  text.pop_back();
  return text;
}

}  // namespace attend
