#pragma once

#include <cstdint>

#include "attend/kernels/attention.h"
#include "attend/kernels/storage.h"

// Linear recurrences on plain pointers, forward and backward, in memory linear in the tokens. Each
// head has a state S, [depth, value_depth].
//
//   S_t = e^(g_t) S_(t-1) + k_t u_t^T.
//   u_t = b_t (v_t - (e^(g_t) S_(t-1))^T k_t) with the delta rule, otherwise b_t v_t.
//   o_t = scale S_t^T q_t.
//
// The decay g_t is one number or one number per row of S.
// Sources: Katharopoulos 2020 (linear attention), Sun 2023 (retention), Dao 2024 (Mamba-2), Yang
// 2023 (GLA), Yang 2024 (gated delta rule). ONNX opset 27 defines LinearAttention in the same way.
//
// S is the storage type of queries, keys, values and outputs: float, double, BFloat16 or Float16.
// Decays, strengths, states and the arithmetic are Compute<S>. NaN stays within its sequence and
// head; there it may also reach earlier tokens.

namespace attend::kernels {

struct RecurrenceShape {
  int64_t batch = 1;
  int64_t heads = 1;      // heads of states, values, decays and strengths
  int64_t key_heads = 1;  // divides heads; adjacent heads share queries and keys
  int64_t tokens = 0;
  int64_t depth = 0;        // numbers per query and key
  int64_t value_depth = 0;  // numbers per value and output
  int64_t decay_depth = 0;  // numbers per decay: 0 (no decay), 1 or depth
};

template <class S>
struct Recurrence {
  RecurrenceShape shape;
  View<const S> query;              // [batch, key_heads, tokens, depth]
  View<const S> key;                // [batch, key_heads, tokens, depth]
  View<const S> value;              // [batch, heads, tokens, value_depth]
  View<const Compute<S>> decay;     // g, [batch, heads, tokens, decay_depth], each at most 0
  View<const Compute<S>> strength;  // b, [batch, heads, tokens, 1]; null: 1
  // State before the first token of each sequence, [sequences, heads, depth, value_depth],
  // contiguous; null: 0.
  const Compute<S>* initial = nullptr;
  bool delta = false;
  double scale = 1;
  // Queries and keys become x / sqrt(x . x + epsilon).
  bool normalise = false;
  double epsilon = 1e-6;
  // Ragged batch: sequence s has the tokens [offsets[s], offsets[s + 1]) of the only batch entry.
  // Null: each batch entry is one sequence.
  const int64_t* offsets = nullptr;
  int64_t sequences = 0;  // with offsets
  int64_t chunk = 0;      // tokens per product; 0: the fastest
};

template <class S>
struct RecurrenceResult {
  View<S> output;  // [batch, heads, tokens, value_depth]
  Compute<S>* last =
      nullptr;  // states after the last tokens, shape of `initial`; null: not written
  // For backward: kept_numbers(problem) numbers; null: not written.
  Compute<S>* kept = nullptr;
};

template <class S>
struct RecurrenceUpstream {
  View<const S> grad_output;
  const Compute<S>* grad_last = nullptr;  // null: 0
  const Compute<S>* kept = nullptr;
};

// Outputs of the backward pass, overwritten. Gradients of queries and keys are not summed over the
// heads that share them.
template <class S>
struct RecurrenceGradients {
  View<S> query;                  // [batch, heads, tokens, depth]
  View<S> key;                    // [batch, heads, tokens, depth]
  View<S> value;                  // [batch, heads, tokens, value_depth]
  View<Compute<S>> decay;         // [batch, heads, tokens, decay_depth]; null: not written
  View<Compute<S>> strength;      // [batch, heads, tokens, 1]; null: not written
  Compute<S>* initial = nullptr;  // null: not written
};

// Count of numbers that backward needs: a state per head, sequence and segment of tokens, then,
// with the delta rule, u_t / b_t per head and token.
template <class S>
int64_t kept_numbers(const Recurrence<S>& problem);

// threads: 0 uses the number of OpenMP. Results are bit-identical for any number. Throws
// attend::Error on sizes that do not fit, with the name of the argument, and if memory runs out.
// `last` may be `initial`.
template <class S>
void recurrence_forward(const Recurrence<S>& problem, const RecurrenceResult<S>& result,
                        int threads = 0);

template <class S>
void recurrence_backward(const Recurrence<S>& problem, const RecurrenceUpstream<S>& upstream,
                         const RecurrenceGradients<S>& gradients, int threads = 0);

}  // namespace attend::kernels
