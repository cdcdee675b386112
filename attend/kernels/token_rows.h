#pragma once

#include <cstdint>

#include "attend/kernels/packed_matrix.h"

namespace attend::kernels {

// The logits of rows over tokens, y_rt = w_t . a_r + b_t, and what a search asks of them. Panels of
// tokens are looked at as they are computed: no array of rows x tokens is, unless `all` is wanted,
// or helpers (kernels/helpers.h) compute the logits of few rows. Each row is computed by itself:
// its bits do not depend on the rows beside it.
struct TokenRows {
  int64_t rows = 0;
  const PackedMatrix* matrix = nullptr;  // a column a token
  const float* a = nullptr;              // row r at a + r * a_stride
  int64_t a_stride = 0;
  int64_t best = 1;  // how many of a row's most probable tokens are wanted, 1 to the tokens
  const int64_t* excluded = nullptr;  // [excluded_count]: tokens that are none of them
  int64_t excluded_count = 0;
  const int64_t* given = nullptr;  // [rows]: the one token of a row, or -1; null: of all -1
  // [rows, best]: largest first, equal ones by their tokens; -inf where there are no more. A row
  // with a given token has that one, then -inf.
  float* log_probabilities = nullptr;
  int64_t* tokens = nullptr;
  float* all = nullptr;  // [rows, tokens]: the log probabilities of all; null: not wanted
};

void token_rows(const TokenRows& problem);

}  // namespace attend::kernels
