#pragma once

#include <cstdint>

namespace attend::kernels {

// Storage type of cached keys and values. bfloat16 rounds each number to 8 significant bits;
// scores, weights and contexts are float.
enum class CacheType { float32, bfloat16 };

// Attention of one query per row over keys at scattered addresses: w_rhj = softmax_j(scale (s(q_rh,
// k_rhj) + b_rhj)), c_rh = sum_j w_rhj v_rhj. s(q, k) = q . k or, with a vector u, sum_a u_a
// tanh(q_a + k_a) (Bahdanau et al. 2015). A slot holds one key and one value for all heads,
// [key_heads, depth] and [key_heads, value_depth]. Hypotheses of a search share the slots of their
// common prefix; reordering them moves no slot. The bits of a row do not depend on other rows.
struct CachedAttention {
  int64_t rows = 0;
  int64_t heads = 1;
  int64_t key_heads = 1;    // divides heads
  int64_t depth = 0;        // query and key of a head: a multiple of 16
  int64_t value_depth = 0;  // value and context of a head: a multiple of 16
  int64_t keys = 0;         // 1 or more
  // [rows]: number of leading keys that a row reads; null: all. A row without keys has context 0.
  const int64_t* lengths = nullptr;
  float scale = 1;
  const float* vector = nullptr;  // u [depth]; null: q . k
  // b_rhj at bias + h * bias_stride + bias_offsets[r] + j; null: 0.
  const float* bias = nullptr;
  int64_t bias_stride = 0;
  const int64_t* bias_offsets = nullptr;  // [rows]
  const float* query = nullptr;           // head h of row r at query + r * query_stride + h * depth
  int64_t query_stride = 0;
  CacheType type = CacheType::float32;
  // Key j of row r starts places[r * row_stride + j * key_stride] * place_stride numbers after
  // slots[j]. Its value starts value_offset numbers after the key.
  const void* const* slots = nullptr;  // [keys]
  const int32_t* places = nullptr;
  int64_t row_stride = 0;
  int64_t key_stride = 0;
  int64_t place_stride = 0;
  int64_t value_offset = 0;
  float* context = nullptr;  // head h of row r at context + r * context_stride + h * value_depth
  int64_t context_stride = 0;
  float* weights = nullptr;  // [rows, keys]: mean of the heads' weights; null: not written
};

void cached_attention(const CachedAttention& problem);

// Writes rows of keys or values in the format of a cache; NaN stays NaN.
struct CachedRows {
  int64_t rows = 0;
  int64_t columns = 0;          // a multiple of 16
  const float* from = nullptr;  // row r at from + r * from_stride
  int64_t from_stride = 0;
  CacheType type = CacheType::float32;
  void* to = nullptr;  // row r + 1 starts to_stride numbers after row r
  int64_t to_stride = 0;
};

void cache_rows(const CachedRows& problem);

}  // namespace attend::kernels
