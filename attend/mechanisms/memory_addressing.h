#pragma once

#include <ATen/ATen.h>

namespace attend {

// Addressing of a memory [B, N, W] of N rows (locations). R heads have non-negative weights [B, R,
// N] over the rows; the weights of a head sum to 1 (in the differentiable neural computer: to at
// most 1). All functions are differentiable. Error on shapes that do not fit; ranges of values are
// not checked, which keeps steps cheap.

// ---- The neural Turing machine (Graves et al. 2014)

// Content addressing (eq. 5-6): softmax over the rows of strength cos(key, row), score "cosine" of
// the score table. keys [B, R, W], strengths [B, R] at least 0 -> [B, R, N].
at::Tensor address_by_content(const at::Tensor& memory, const at::Tensor& keys,
                              const at::Tensor& strengths);

// gate content + (1 - gate) previous (eq. 7). weights [B, R, N], gates [B, R] from 0 to 1.
at::Tensor interpolate_weights(const at::Tensor& content, const at::Tensor& previous,
                               const at::Tensor& gates);

// Circular convolution (eq. 8): sum_j weights_j shifts_{i - j mod N}. shifts: [B, R, S] with sum 1,
// S odd and at most N; the shares that move by -(S - 1) / 2, ..., (S - 1) / 2 rows.
at::Tensor shift_weights(const at::Tensor& weights, const at::Tensor& shifts);

// weights_i^sharpness / sum_j weights_j^sharpness (eq. 9). The weights must have a positive sum;
// sharpness [B, R] at least 1.
at::Tensor sharpen_weights(const at::Tensor& weights, const at::Tensor& sharpness);

// Rows read by the heads (eq. 2): sum_i weights_i memory_i, [B, R, W].
at::Tensor read_rows(const at::Tensor& memory, const at::Tensor& weights);

// Memory after writing (eq. 3-4): row_i prod_r (1 - w_ri erase_r) + sum_r w_ri add_r. All heads
// erase before any head adds; their order therefore does not matter. erase [B, R, W] from 0 to 1,
// add [B, R, W].
at::Tensor erase_and_add(const at::Tensor& memory, const at::Tensor& weights,
                         const at::Tensor& erase, const at::Tensor& add);

// ---- The differentiable neural computer (Graves et al. 2016, Methods): one write head, [B, N],
// and R read heads, [B, R, N]

// Share of each row that the free gates leave in use: psi = prod_r (1 - gate_r w_r), [B, N].
// free_gates [B, R] from 0 to 1; read_weights of the previous step.
at::Tensor retention(const at::Tensor& free_gates, const at::Tensor& read_weights);

// u' = (u + w - u w) psi, [B, N]: usage grows for rows written in the previous step and shrinks for
// rows that were freed after a read.
at::Tensor next_usage(const at::Tensor& usage, const at::Tensor& write_weights,
                      const at::Tensor& retained);

// Weights for writing new content: with rows sorted by usage, least first (stable), a = (1 - u)
// times the product of the usages before. [B, N] -> [B, N], with sum at most 1.
at::Tensor allocation(const at::Tensor& usage);

// write_gate (allocation_gate allocation + (1 - allocation_gate) content), [B, N]; gates [B].
at::Tensor allocate_or_match(const at::Tensor& allocation, const at::Tensor& content,
                             const at::Tensor& allocation_gate, const at::Tensor& write_gate);

// Order in which rows were written.
struct TemporalLinks {
  at::Tensor links;  // L [B, N, N]: degree to which row i was written right after row j; rows and
                     // columns sum to at most 1, diagonal 0
  at::Tensor precedence;  // p [B, N]: degree to which row i was written last; sums to at most 1
};

// Zeros, the state before the first write; `options` sets dtype and device.
TemporalLinks no_links(int64_t batch, int64_t rows, const at::TensorOptions& options);

// After writing with weights w [B, N]: L'_ij = (1 - w_i - w_j) L_ij + w_i p_j off the diagonal,
// then p' = (1 - sum w) p + w.
TemporalLinks after_writing(const TemporalLinks& before, const at::Tensor& write_weights);

// Rows written right after and right before the rows that each head read: f = L w and b = L^T w,
// [B, R, N].
struct Followed {
  at::Tensor forward;
  at::Tensor backward;
};
Followed follow_links(const TemporalLinks& links, const at::Tensor& read_weights);

// modes_1 backward + modes_2 content + modes_3 forward, [B, R, N]; modes: [B, R, 3] with sum 1.
at::Tensor mix_read_modes(const Followed& followed, const at::Tensor& content,
                          const at::Tensor& modes);

}  // namespace attend
