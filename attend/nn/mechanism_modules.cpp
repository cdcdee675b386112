#include "attend/nn/mechanism_table-inl.h"

namespace attend {
namespace {

constexpr std::string_view reads_its_sequence =
    "its queries are the sequence that it reads, and a decoder's queries are its states; take "
    "cross";

// Forms of heads.
std::vector<Mechanism> head_forms() {
  return {
      {.name = "gated_attention",
       .title = "Gated attention",
       .source = "Qiu et al. 2025, 2.2",
       .year = 2025,
       .change = Change::module,
       .parent = "self",
       .used_by = "Qwen3-Next",
       .formula = "c_i = sigmoid(W_g x_i) * sum_j w_ij v_j, w_ij = softmax_j(q_i . k_j / sqrt(d))",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .module = "HeadGroup::gated of MultiHeadAttention; the gate does not change the weights",
       .module_kind = ModuleKind::output_gate,
       .refusal = reads_its_sequence},
      {.name = "differential",
       .title = "Differential attention",
       .source = "Ye et al. 2024, eq. 1-3",
       .year = 2024,
       .change = Change::module,
       .parent = "self",
       .used_by = "DiffLlama, Motif 2.6B",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d)) - l softmax_j(q'_i . k'_j / sqrt(d)), "
                  "l = exp(a . b) - exp(e . f) + l_0",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .module = "HeadGroup::differential of MultiHeadAttention: heads in pairs, and a norm of "
                 "their contexts",
       .module_kind = ModuleKind::difference,
       .refusal = reads_its_sequence},
      {.name = "latent",
       .title = "Multi-head latent attention (MLA)",
       .source = "DeepSeek-AI 2024, eq. 9-19",
       .year = 2024,
       .change = Change::module,
       .parent = "self",
       .used_by = "DeepSeek-V2, DeepSeek-V3, Kimi K2",
       .formula = "k_j = [K c_j; R_j r_j], v_j = V c_j, c_j = RMS norm(W x_j), r_j of all heads: "
                  "w_ij = softmax_j(q_i . k_j / sqrt(d + d_r))",
       .queries = sequence_positions,
       .memory = "a vector of d_c numbers per token",
       .relation = Relation::same,
       .carries = "c_j and R_j r_j so far",
       .cache = "(d_c + d_r) / heads",
       .module = "HeadGroup::latent_depth of MultiHeadAttention, LatentHeads",
       .module_kind = ModuleKind::latent,
       .refusal = reads_its_sequence},
  };
}

// Keys chosen by queries and keys.
std::vector<Mechanism> chosen_keys() {
  return {
      {.name = "moba",
       .title = "Mixture of block attention (MoBA)",
       .source = "Lu et al. 2025, eq. 5-8",
       .year = 2025,
       .change = Change::scope,
       .parent = "masked_self",
       .used_by = "Kimi",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d)) over j <= i in the own block and in the "
                  "past blocks with the largest q_i . mean(k)",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal & top_blocks:64,3"},
       .short_scope = "causal & top_blocks:2,2",
       .time = "n k B d + n m d / B",
       .space = "(n + m) d, and a byte per query and block",
       .carries = "keys and values so far",
       .refusal = reads_its_sequence},
      {.name = "nsa",
       .title = "Native sparse attention (NSA)",
       .source = "Yuan et al. 2025, eq. 5-12",
       .year = 2025,
       .change = Change::module,
       .parent = "masked_self",
       .formula = "c_i = g_i c_i(means of past blocks) + g'_i c_i(selected blocks) + g''_i "
                  "c_i(window), each by softmax_j(q_i . k_j / sqrt(d))",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal"},
       .time = "n (k B + W) d + n m d / B",
       .space = "(n + m) d, and n m / B",
       .carries = "keys and values so far",
       .module = "HeadGroup::branches of MultiHeadAttention, SparseBranches",
       .module_kind = ModuleKind::branches,
       .refusal = reads_its_sequence},
      {.name = "dsa",
       .title = "Sparse attention with an indexer (DSA)",
       .source = "DeepSeek-AI 2025, eq. 1-4",
       .year = 2025,
       .change = Change::module,
       .parent = "self",
       .used_by = "DeepSeek-V3.2",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d)) over the keys with the largest I_ij = "
                  "sum_h w_ih max(0, q'_ih . k'_j)",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .time = "n k d + n m d'",
       .space = "(n + m) d, and n m for I",
       .carries = "keys, values and keys of the indexer so far",
       .cache = "2 d, and d' for all heads",
       .module = "HeadGroup::indexer of MultiHeadAttention, KeyIndexer",
       .module_kind = ModuleKind::indexer,
       .refusal = reads_its_sequence},
  };
}

// Scores that depend on other queries.
std::vector<Mechanism> scores_of_others() {
  return {
      {.name = "selective",
       .title = "Selective attention",
       .source = "Leviathan et al. 2024, 3",
       .year = 2024,
       .change = Change::bias,
       .parent = "masked_self",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d) - F_ij), F_ij = sum_{j < t < i} max(0, "
                  "s_tj), s the scores of the first head, F_i0 = 0",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal"},
       .space = "(n + m) d, and n m for F of all heads",
       .carries = "keys, values and F so far",
       .cache = "2 d, and 1 for all heads",
       .module = "HeadGroup::selective of MultiHeadAttention; the kernels do not form F, since it "
                 "adds up all rows before",
       .module_kind = ModuleKind::selection,
       .refusal = reads_its_sequence},
      {.name = "multi_token",
       .title = "Multi-token attention",
       .source = "Golovneva et al. 2025, 3",
       .year = 2025,
       .change = Change::score,
       .parent = "masked_self",
       .formula = "w_ij = softmax_j(sum_ab K_ab s_(i-a, j-b)), s_ij = q_i . k_j / sqrt(d), 0 for j "
                  "> i, a from 0 to 5, b from -5 to 5; then heads in pairs mix their weights",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal"},
       .time = "n m (d + 66)",
       .space = "(n + m) d, and n m for all weights",
       .carries = "keys, values and the last 5 queries",
       .module = "HeadGroup::mix of MultiHeadAttention, ScoreMixer; not fused: a weight depends on "
                 "scores of other rows, which a tile of the kernels does not hold",
       .module_kind = ModuleKind::score_mix,
       .refusal = reads_its_sequence},
  };
}

// Segments with a memory of earlier ones.
std::vector<Mechanism> segment_memories() {
  return {
      {.name = "infini",
       .title = "Infini-attention",
       .source = "Munkhdalai et al. 2024, eq. 2-7 and 10",
       .year = 2024,
       .change = Change::module,
       .parent = "masked_self",
       .formula =
           "w_ij = (1 - g) softmax_j(q_i . k_j / sqrt(d)) over j <= i of the own segment, and "
           "g f(q_i) . f(k_j) / sum_j f(q_i) . f(k_j) over the segments before, f(x) = "
           "elu(x) + 1",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal"},
       .time = "n (S + d) d for segments of S tokens",
       .space = "(n + m) d, and n d^2 / S",
       .carries = "the own segment, and the sums of f(k)^T v and f(k)",
       .cache = "d^2 + d in all, and 2 d of at most S tokens",
       .module = "HeadGroup::memory_segment of MultiHeadAttention, SegmentMemory",
       .module_kind = ModuleKind::memory,
       .refusal = reads_its_sequence},
  };
}

// Layers that attend to layers.
std::vector<Mechanism> over_depth() {
  return {
      {.name = "attention_residuals",
       .title = "Attention residuals",
       .source = "Kimi Team 2026",
       .year = 2026,
       .change = Change::inputs,
       .parent = "fixed_dot",
       .formula =
           "x_i = sum_{j < i} w_ij v_j of sublayer i, w_ij = softmax_j(u_i . v_j / rms(v_j))",
       .queries = "a learned vector per sublayer",
       .memory = "the input and the outputs of the sublayers before, of the same position",
       .relation = Relation::learned,
       .choices = {.score = "dot", .scope = "causal"},
       .time = "L^2 n d for L sublayers",
       .space = "L n d",
       .cache = "0",
       .module =
           "DepthAttention of TransformerStack, by model.sublayer_input = attention; composed of "
           "tensor operations",
       .module_kind = ModuleKind::depth,
       .refusal = "it reads the sublayers of a Transformer; take cross"},
  };
}

}  // namespace

std::vector<Mechanism> module_mechanisms() {
  std::vector<Mechanism> all = head_forms();
  for (const std::vector<Mechanism>& more :
       {chosen_keys(), scores_of_others(), segment_memories(), over_depth()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace attend
