#include "attend/kernels/check.h"

#include <algorithm>
#include <variant>

#include "attend/base/error.h"

namespace attend::kernels {
namespace {

void check_shape(const Shape& s) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"batch", s.batch}, {"heads", s.heads}, {"key_heads", s.key_heads},    {"queries", s.queries},
      {"keys", s.keys},   {"depth", s.depth}, {"value_depth", s.value_depth}};
  for (const auto& [name, size] : sizes) {
    if (size < 0) fail("[attention] shape.{} is {}; sizes must not be negative", name, size);
  }
  // Offsets are 64-bit numbers; this bounds offsets into the largest array, including its padding.
  const auto rows = static_cast<double>(std::max(s.queries, s.keys));
  const auto columns = static_cast<double>(std::max(s.depth, s.value_depth)) + 64;
  const double numbers =
      static_cast<double>(s.batch) * static_cast<double>(s.heads) * rows * columns;
  if (numbers > 0x1p60) fail("[attention] shape has {:.3g} numbers; at most 2^60 fit", numbers);
  if (s.heads > 0 && (s.key_heads == 0 || s.heads % s.key_heads != 0))
    fail("[attention] shape.key_heads is {}; it must divide shape.heads, {}", s.key_heads, s.heads);
}

int64_t row_count(const Shape& s) { return s.batch * s.heads * s.queries; }

template <class T>
void check_score(const Shape& s, const Score<T>& score) {
  if (score.family == Family::additive && score.vector == nullptr && s.heads * s.depth > 0)
    fail("[attention] score.vector is null; the additive family needs it");
  if (!(score.soft_cap >= 0))
    fail("[attention] score.soft_cap is {}; it must be positive, or 0 for none", score.soft_cap);
  if (!(score.negative_slope >= 0 && score.negative_slope <= 1))
    fail("[attention] score.negative_slope is {}; it must be from 0 to 1", score.negative_slope);
}

template <class T>
void check_columns(const Shape& s, const Bias<T>& bias) {
  if (bias.query_products == nullptr && bias.key_products == nullptr) return;
  constexpr int64_t kMost = 1 << 20;
  if (bias.product_columns < 1 || bias.product_columns > kMost)
    fail("[attention] bias.product_columns is {}; it must be from 1 to {}", bias.product_columns,
         kMost);
  if (row_count(s) == 0 || s.keys == 0) return;
  const int64_t count = s.queries + s.keys - 1;
  check_array("bias.columns", bias.columns, count);
  if (bias.columns_stride != 0 && bias.columns_stride != count)
    fail("[attention] bias.columns_stride is {}; it must be 0 or queries + keys - 1, {}",
         bias.columns_stride, count);
  for (int64_t n = 0; n < (bias.columns_stride == 0 ? count : s.batch * count); ++n) {
    if (bias.columns[n] < 0 || bias.columns[n] >= bias.product_columns)
      fail("[attention] bias.columns[{}] is {}; it must be 0 to {}", n, bias.columns[n],
           bias.product_columns - 1);
  }
}

template <class T>
void check_bias(const Shape& s, const Bias<T>& bias) {
  check_columns(s, bias);
  if (bias.relative.data != nullptr && bias.relative_count < 1)
    fail("[attention] bias.relative_count is {}; a table must have at least 1 entry",
         bias.relative_count);
  if ((bias.centres == nullptr) != (bias.widths == nullptr))
    fail("[attention] bias.{} is null; centres and widths go together",
         bias.centres == nullptr ? "centres" : "widths");
  if (row_count(s) > 0 && s.keys > 0 && (bias.query_sums == nullptr) != (bias.key_sums == nullptr))
    fail("[attention] bias.{} is null; sums of queries and keys go together",
         bias.query_sums == nullptr ? "query_sums" : "key_sums");
  for (int64_t row = 0; bias.widths != nullptr && row < row_count(s); ++row) {
    // NaN passes; its row becomes NaN.
    if (bias.widths[row] <= 0)
      fail("[attention] bias.widths[{}] is {}; widths must be positive", row, bias.widths[row]);
  }
}

template <class S>
void check_normaliser(const Problem<S>& problem) {
  if (problem.sinks != nullptr && problem.normaliser != Normaliser::softmax)
    fail("[attention] sinks are given with a normaliser other than softmax; only softmax has them");
  if ((problem.alphas != nullptr) != (problem.normaliser == Normaliser::entmax))
    fail("[attention] alphas are {}; entmax needs them, and no other normaliser takes them",
         problem.alphas == nullptr ? "null" : "given");
  for (int64_t h = 0; problem.alphas != nullptr && h < problem.shape.heads; ++h) {
    // NaN passes; the rows of its head become NaN.
    if (problem.alphas[h] <= 1 || problem.alphas[h] > 4)
      fail("[attention] alphas[{}] is {}; alpha must be above 1 and at most 4", h,
           problem.alphas[h]);
  }
  if (problem.normaliser == Normaliser::top_k && problem.top < 1)
    fail("[attention] top is {}; top_k keeps 1 key or more", problem.top);
}

void check_wanted(const char* name, const void* gradient, bool given) {
  if (gradient != nullptr && !given)
    fail("[attention] the gradient of {} is requested, and the problem lacks it", name);
}

}  // namespace

void check_array(std::string_view name, const void* data, int64_t count) {
  if (data == nullptr && count > 0)
    fail("[attention] {} is null; it must point to {} numbers", name, count);
}

void check(const Dropout& dropout) {
  if (!(dropout.probability >= 0 && dropout.probability < 1))
    fail("[attention] dropout.probability is {}; it must be at least 0 and below 1",
         dropout.probability);
}

template <class S>
void check(const Problem<S>& problem) {
  const Shape& s = problem.shape;
  check_shape(s);
  check_array("query", problem.query.data, row_count(s) * s.depth);
  check_array("key", problem.key.data, s.batch * s.key_heads * s.keys * s.depth);
  check_array("value", problem.value.data, s.batch * s.key_heads * s.keys * s.value_depth);
  check_score(s, problem.score);
  check_bias(s, problem.bias);
  check(problem.dropout);
  check_normaliser(problem);
  for (const Clause& clause : problem.scope.any_of) {
    for (const Condition& condition : clause)
      std::visit([&](const auto& one) { one.check(s); }, condition);
  }
  if (problem.bias.edges.data != nullptr && !edge_scope(problem.scope))
    fail(
        "[attention] bias.edges has a number for each edge; the scope is not one clause with one "
        "condition of edges");
}

template <class S>
void check(const Problem<S>& problem, const Result<S>& result) {
  check(problem);
  check_array("context", result.context.data, row_count(problem.shape) * problem.shape.value_depth);
}

template <class S>
void check(const Problem<S>& problem, const Upstream<S>& upstream, const Gradients<S>& gradients) {
  check(problem);
  const Shape& s = problem.shape;
  const int64_t context = row_count(s) * s.value_depth, keys = s.batch * s.key_heads * s.keys;
  check_array("upstream.context", upstream.context.data, context);
  check_array("upstream.grad_context", upstream.grad_context.data, context);
  check_array("upstream.lse", upstream.lse, row_count(s));
  check_array("gradients.query", gradients.query.data, row_count(s) * s.depth);
  check_array("gradients.key", gradients.key.data, keys * s.depth);
  check_array("gradients.value", gradients.value.data, keys * s.value_depth);
  check_wanted("bias.dense", gradients.bias, problem.bias.dense.data != nullptr);
  check_wanted("bias.slopes", gradients.slopes, problem.bias.slopes != nullptr);
  check_wanted("bias.relative", gradients.relative, problem.bias.relative.data != nullptr);
  check_wanted("bias.centres", gradients.centres, problem.bias.centres != nullptr);
  check_wanted("bias.widths", gradients.widths, problem.bias.widths != nullptr);
  check_wanted("bias.edges", gradients.edges, problem.bias.edges.data != nullptr);
  check_wanted("bias.query_sums", gradients.query_sums, problem.bias.query_sums != nullptr);
  check_wanted("bias.key_sums", gradients.key_sums, problem.bias.key_sums != nullptr);
  check_wanted("bias.query_products", gradients.query_products,
               problem.bias.query_products != nullptr);
  check_wanted("bias.key_products", gradients.key_products, problem.bias.key_products != nullptr);
  check_wanted("sinks", gradients.sinks, problem.sinks != nullptr);
  check_wanted("alphas", gradients.alphas, problem.alphas != nullptr);
}

template void check(const Problem<float>&);
template void check(const Problem<double>&);
template void check(const Problem<BFloat16>&);
template void check(const Problem<Float16>&);
template void check(const Problem<float>&, const Result<float>&);
template void check(const Problem<double>&, const Result<double>&);
template void check(const Problem<BFloat16>&, const Result<BFloat16>&);
template void check(const Problem<Float16>&, const Result<Float16>&);
template void check(const Problem<float>&, const Upstream<float>&, const Gradients<float>&);
template void check(const Problem<double>&, const Upstream<double>&, const Gradients<double>&);
template void check(const Problem<BFloat16>&, const Upstream<BFloat16>&,
                    const Gradients<BFloat16>&);
template void check(const Problem<Float16>&, const Upstream<Float16>&, const Gradients<Float16>&);

}  // namespace attend::kernels
