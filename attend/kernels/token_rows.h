#pragma once

#include <cstdint>

#include "attend/kernels/packed_matrix.h"

namespace attend::kernels {

// Logits of rows over tokens, y_rt = w_t . a_r + b_t, and the best tokens of each row for a search.
// Panels of tokens are processed as they are computed. An array of rows x tokens exists only if
// `all` is wanted, or if helpers (kernels/helpers.h) compute the logits of few rows. The bits of a
// row do not depend on other rows.
struct TokenRows {
  int64_t rows = 0;
  const PackedMatrix* matrix = nullptr;  // one column per token
  const float* a = nullptr;              // row r at a + r * a_stride
  int64_t a_stride = 0;
  int64_t best = 1;  // number of most probable tokens per row, 1 to the number of tokens
  const int64_t* excluded = nullptr;  // [excluded_count]: tokens that must not be returned
  int64_t excluded_count = 0;
  const int64_t* given = nullptr;  // [rows]: fixed token of a row, or -1; null: -1 for all
  // [rows, best]: largest first, equal ones in token order; -inf after the last. A row with a fixed
  // token has only this token, then -inf.
  float* log_probabilities = nullptr;
  int64_t* tokens = nullptr;
  float* all = nullptr;  // [rows, tokens]: log probabilities of all tokens; null: not written
};

void token_rows(const TokenRows& problem);

}  // namespace attend::kernels
