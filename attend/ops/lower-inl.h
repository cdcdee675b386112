#pragma once

#include <string>

#include "attend/ops/backend.h"

namespace attend {

struct Lowered {
  Parts parts;
  c10::intrusive_ptr<LoweredSpec> spec;
  // For queries that run in order: what their pasts are mapped with, and the first one.
  Parameters parameters = {};
  PastWeights past = {};  // [B, H, Tk], in the dtype of the arithmetic
};

// Checks the tensors and brings them there. An undefined value is one of depth 0. Keys that later
// queries read too stay apart from the queries. What is computed of them afterwards takes place
// WithoutAutocast.
Lowered lower(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
              const AttentionSpec& spec, bool for_later_queries = false);

// True where there are several queries and each needs the weights of those before.
bool runs_in_order(const Lowered& lowered);

// Gives the parts and the form of one query its past.
void add_past(const Parameters& parameters, const PastWeights& past, Parts& parts,
              LoweredSpec& spec);

// What the scores of such a spec have been divided by.
double folded_temperature(const LoweredSpec& spec);

// [T, D] and [B, T, D] as [1, 1, T, D] and [B, 1, T, D], and back.
at::Tensor with_four_axes(const at::Tensor& x);
at::Tensor with_axes_of(const at::Tensor& result, const at::Tensor& query);

// [B, groups of heads, T, D] with each group as often as heads share it.
inline at::Tensor repeat_heads(const at::Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

// The numbers that an expanded tensor holds: its axes of stride 0 become axes of 1. As it is where
// it is differentiated, for then each repetition has a gradient of its own.
at::Tensor without_repetitions(const at::Tensor& x);

// A tensor of the spec in the dtype of the arithmetic; Error on another dtype or device.
at::Tensor in_arithmetic(const at::Tensor& given, const char* name, const Parts& parts,
                         const LoweredSpec& spec);
// The same, [H], from that or from one number.
at::Tensor per_head(const at::Tensor& given, const char* name, const Parts& parts,
                    const LoweredSpec& spec);

// Adds the spec's bias to the parts. `query_axes` are those that the caller's queries have.
void add_bias(const Bias& bias, int64_t query_axes, Parts& parts, LoweredSpec& spec);

// The parts of a bias as [B or 1, H or 1, Tq or 1, Tk].
at::Tensor dense_of_slopes(const at::Tensor& slopes, int64_t offset, int64_t queries, int64_t keys);
at::Tensor dense_of_relative(const at::Tensor& relative, const LoweredSpec& spec);
at::Tensor dense_of_gaussian(const at::Tensor& centres, const at::Tensor& widths, int64_t keys);

// LoweredSpec::key_shift as the scores have it, [B, H, 1, Tk or 1].
at::Tensor key_shifts(const LoweredSpec& spec);

// What dropout multiplies the weights by, [B, H, Tq, Tk].
at::Tensor dropout_factors(const LoweredSpec& spec, const at::TensorOptions& options);

// The composed twin: the same by tensor operations. Context in the dtype of the arithmetic.
AttentionResult composed_attention(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_scores(const Parts& parts, const LoweredSpec& spec);
at::Tensor composed_weights(const Parts& parts, const LoweredSpec& spec);

// Whether the normaliser sums features up that are divided by the largest of them.
bool shifts_features(const LoweredSpec& spec);
// Divides them, which come as logarithms where the score has these.
void shift_features(Parts& parts, LoweredSpec& spec, bool for_later_queries);

// Why the linear normaliser has no running sums for this; empty where it has.
std::string why_not_running_sums(const LoweredSpec& spec);

// The same in O((Tq + Tk) A Dv); context in the dtype of the arithmetic.
AttentionResult linear_attention(const Parts& parts, const LoweredSpec& spec);

// Each query after those before it, for several that look back: the same results, in the dtype of
// the arithmetic, contexts too. Weights and scores are [B, H, Tq, Tk].
AttentionResult attention_in_order(const Lowered& whole, Path path);
at::Tensor weights_in_order(const Lowered& whole, const at::Tensor& lse, Path path);
at::Tensor scores_in_order(const Lowered& whole);

// One spec that does not look back, or one query; Error where the path says fused and cannot be.
AttentionResult attention_at_once(const Lowered& lowered, Path path);
// All weights of one spec that does not look back, or of one query.
at::Tensor weights_at_once(const Lowered& lowered, const at::Tensor& lse, Path path);

// The backend that takes this, forward-mode derivatives aside.
BackendChoice fused_backend(const Parts& parts, const LoweredSpec& spec);

// Tile by tile, by that backend; context in the dtype of the queries.
AttentionResult fused_attention(const Backend& backend, const Parts& parts,
                                const c10::intrusive_ptr<LoweredSpec>& spec);

}  // namespace attend
