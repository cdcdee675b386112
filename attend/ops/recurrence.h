#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <vector>

namespace attend {

// Number of decays.
enum class DecayKind {
  none,   // the state does not decay
  head,   // one constant per head
  token,  // one number per token and head
  row,    // one number per token, head and row of the state
};

// One published linear recurrence. Each head has a state S, [depth, value depth].
//
//   S_t = e^(g_t) S_(t-1) + k_t u_t^T.
//   u_t = b_t (v_t - (e^(g_t) S_(t-1))^T k_t), or b_t v_t.
//   o_t = scale S_t^T q_t, or scale (S_(t-1) + diag(c) k_t u_t^T)^T q_t with the bonus c.
//
// Rows are only data; the same code runs all rows.
struct RecurrenceRow {
  std::string_view name;
  std::string_view title;
  std::string_view formula;  // the state
  std::string_view source;
  int year = 0;                            // year of the publication
  std::string_view parent = {};            // recurrence that this row changes; empty: a mechanism
  std::string_view parent_mechanism = {};  // mechanism that this row changes, without a parent
  std::string_view used_by = {};           // released models, joined by commas
  DecayKind decay = DecayKind::none;
  bool delta = false;      // u_t has the term of the decayed state
  bool strength = false;   // b_t is an input; otherwise 1
  bool bonus = false;      // o_t reads the state before the update and adds a bonus
  bool unit_keys = false;  // its layers normalise queries and keys to length 1
  // b_t is the softplus of an input and also a factor of g_t; otherwise b_t is a sigmoid
  bool step_sizes = false;
  bool convolution = false;   // its layers convolve queries, keys and values over 4 tokens
  bool sigmoid_gate = false;  // its layers gate outputs by a sigmoid, otherwise by SiLU
};

// All linear recurrences, in the order of the documentation.
const std::vector<RecurrenceRow>& recurrence_table();

std::string_view decay_name(DecayKind kind);

// The row with that name. Error otherwise; the message suggests the nearest name.
const RecurrenceRow& recurrence_row(std::string_view name);

struct RecurrenceSpec {
  // g, natural logarithms, each at most 0: [H] (one constant per head), [B, H, T] or [B, H, T, D].
  // Undefined: no decay.
  at::Tensor decay;
  at::Tensor strength;  // b, [B, H, T]; undefined: 1
  bool delta = false;
  // c, [H, D]: o_t = scale (S_(t-1) + diag(c) k_t u_t^T)^T q_t. Not with delta. Undefined: o_t =
  // scale S_t^T q_t.
  at::Tensor bonus;
  std::optional<double> scale;  // absent: 1 / sqrt(D)
  bool l2_normalise = false;    // queries and keys become x / sqrt(x . x + 1e-6)
  at::Tensor initial;           // state before the first token, [B, H, D, Dv]; undefined: 0
  // Ragged batch: sequence s has the tokens [offsets[s], offsets[s + 1]) of the only batch entry,
  // and its own state. Int64 [sequences + 1] on the CPU; undefined: every batch entry is one
  // sequence.
  at::Tensor offsets;
};

struct RecurrenceResult {
  at::Tensor output;  // [B, H, T, Dv]
  // State after the last token, [B, H, D, Dv], or [sequences, H, D, Dv] with offsets; in float32
  // unless the inputs are float64.
  at::Tensor state;
};

// Queries and keys [B, Hk, T, D] with Hk a divisor of H, values [B, H, T, Dv], in float32, float64,
// bfloat16 or float16. H / Hk adjacent heads share queries and keys. On the CPU the kernels of
// kernels/recurrence.h compute it, in memory linear in T; elsewhere, and for second and forward
// derivatives, tensor operations token by token. All tensors have gradients. Error, with the name
// of the argument, if shapes or types disagree, a decay is above 0 or NaN, or a strength is NaN.
RecurrenceResult linear_recurrence(const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value, const RecurrenceSpec& spec = {});

// The weights w_ij in o_i = sum_j w_ij v_j, [B, H, T, T], 0 for j > i: the output for values that
// are the rows of an identity matrix. Weights may be negative and need not sum to 1. Ignores
// spec.initial.
at::Tensor recurrence_weights(const at::Tensor& query, const at::Tensor& key,
                              const RecurrenceSpec& spec, int64_t heads);

// linear_recurrence() by tensor operations, token by token.
RecurrenceResult composed_recurrence(const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value, const RecurrenceSpec& spec = {});

}  // namespace attend
