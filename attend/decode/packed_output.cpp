#include "attend/decode/packed_output.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "attend/decode/packed_tensors-inl.h"
#include "attend/kernels/token_rows.h"

namespace attend {

using at::Tensor;

bool may_step_packed(const Pass& pass) {
  return !at::GradMode::is_enabled() && pass.watch == nullptr;
}

bool PackedOutput::takes(const TokenOutput& output) {
  return is_plain_float(output.weight) && (!output.bias.defined() || is_plain_float(output.bias));
}

PackedOutput::PackedOutput(const TokenOutput& output, WeightType weights)
    : matrix_(packed(output.weight, output.bias, weights)) {}

Tensor PackedOutput::all(const float* vectors, int64_t rows, int64_t stride) const {
  Tensor log_probabilities = at::empty({rows, matrix_.columns()});
  std::vector<float> best(static_cast<size_t>(rows));
  std::vector<int64_t> tokens(best.size());
  kernels::token_rows({.rows = rows,
                       .matrix = &matrix_,
                       .a = vectors,
                       .a_stride = stride,
                       .log_probabilities = best.data(),
                       .tokens = tokens.data(),
                       .all = log_probabilities.data_ptr<float>()});
  return log_probabilities;
}

NextTokens PackedOutput::best(const float* vectors, int64_t rows, int64_t stride,
                              const NextQuery& query) const {
  const int64_t best = std::min(query.count, matrix_.columns());
  std::vector<float> found(static_cast<size_t>(rows * best));
  NextTokens next{at::empty({rows, best}, at::kDouble), at::empty({rows, best}, at::kLong), {}};
  kernels::token_rows({.rows = rows,
                       .matrix = &matrix_,
                       .a = vectors,
                       .a_stride = stride,
                       .best = best,
                       .excluded = query.excluded.data(),
                       .excluded_count = std::ssize(query.excluded),
                       .given = query.given.empty() ? nullptr : query.given.data(),
                       .log_probabilities = found.data(),
                       .tokens = next.tokens.data_ptr<int64_t>()});
  std::copy(found.begin(), found.end(), next.log_probabilities.data_ptr<double>());
  return next;
}

}  // namespace attend
