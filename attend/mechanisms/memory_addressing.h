#pragma once

#include <ATen/ATen.h>

namespace attend {

// How a network addresses a memory [B, N, W] of N rows (locations) with heads: weights [B, R, N] of
// R heads over the rows, not negative, each head's of sum 1 (in the differentiable neural computer:
// at most 1). Everything is differentiable. Error on shapes that do not fit; what is said to lie in
// a range is not looked at, so as to keep a step cheap.

// ---- The neural Turing machine (Graves et al. 2014)

// Content addressing (eq. 5-6): softmax over the rows of strength cos(key, row), the row "cosine"
// of the score table. keys [B, R, W], strengths [B, R] at least 0 -> [B, R, N].
at::Tensor address_by_content(const at::Tensor& memory, const at::Tensor& keys,
                              const at::Tensor& strengths);

// gate content + (1 - gate) previous (eq. 7). Weights [B, R, N], gates [B, R] from 0 to 1.
at::Tensor interpolate_weights(const at::Tensor& content, const at::Tensor& previous,
                               const at::Tensor& gates);

// Circular convolution (eq. 8): sum_j weights_j shifts_{i - j mod N}. shifts [B, R, S] of sum 1, S
// odd and at most N: how much of the weights moves by -(S - 1) / 2, ..., (S - 1) / 2 rows.
at::Tensor shift_weights(const at::Tensor& weights, const at::Tensor& shifts);

// weights_i^sharpness / sum_j weights_j^sharpness (eq. 9). Weights of sum above 0; sharpness [B, R]
// at least 1.
at::Tensor sharpen_weights(const at::Tensor& weights, const at::Tensor& sharpness);

// What the heads read (eq. 2): sum_i weights_i memory_i, [B, R, W].
at::Tensor read_rows(const at::Tensor& memory, const at::Tensor& weights);

// The memory after writing (eq. 3-4): row_i prod_r (1 - w_ri erase_r) + sum_r w_ri add_r. Every
// head erases before any adds, so that their order does not matter. erase [B, R, W] from 0 to 1,
// add [B, R, W].
at::Tensor erase_and_add(const at::Tensor& memory, const at::Tensor& weights,
                         const at::Tensor& erase, const at::Tensor& add);

// ---- The differentiable neural computer (Graves et al. 2016, Methods): one write head, [B, N],
// and R read heads, [B, R, N]

// How much of each row the free gates leave in use: psi = prod_r (1 - gate_r w_r), [B, N].
// free_gates [B, R] from 0 to 1, the read weights of the step before.
at::Tensor retention(const at::Tensor& free_gates, const at::Tensor& read_weights);

// u' = (u + w - u w) psi, [B, N]: usage grows where the step before wrote and shrinks where its
// reads were freed.
at::Tensor next_usage(const at::Tensor& usage, const at::Tensor& write_weights,
                      const at::Tensor& retained);

// Where to write something new: with the rows ordered by usage, least first (equal ones in their
// order), a = (1 - u) times the product of the usages before. [B, N] -> [B, N], of sum at most 1.
at::Tensor allocation(const at::Tensor& usage);

// write_gate (allocation_gate allocation + (1 - allocation_gate) content), [B, N]; gates [B].
at::Tensor allocate_or_match(const at::Tensor& allocation, const at::Tensor& content,
                             const at::Tensor& allocation_gate, const at::Tensor& write_gate);

// In which order rows were written.
struct TemporalLinks {
  at::Tensor links;       // L [B, N, N]: how much row i was written right after row j; rows and
                          // columns of sum at most 1, diagonal 0
  at::Tensor precedence;  // p [B, N]: how much row i was the last one written; of sum at most 1
};

// Before the first write: zeros, like the options.
TemporalLinks no_links(int64_t batch, int64_t rows, const at::TensorOptions& options);

// After writing with weights w [B, N]: L'_ij = (1 - w_i - w_j) L_ij + w_i p_j off the diagonal,
// then p' = (1 - sum w) p + w.
TemporalLinks after_writing(const TemporalLinks& before, const at::Tensor& write_weights);

// What was written after, and before, what each head read: f = L w and b = L^T w, [B, R, N].
struct Followed {
  at::Tensor forward;
  at::Tensor backward;
};
Followed follow_links(const TemporalLinks& links, const at::Tensor& read_weights);

// modes_1 backward + modes_2 content + modes_3 forward, [B, R, N]; modes [B, R, 3] of sum 1.
at::Tensor mix_read_modes(const Followed& followed, const at::Tensor& content,
                          const at::Tensor& modes);

}  // namespace attend
