#include "attend/nn/mechanism_table-inl.h"

namespace attend {
namespace {

constexpr std::string_view not_states =
    "it rotates positions of one sequence, not a decoder's states and annotations; take shaw";

// Gates between a key and the query.
std::vector<Mechanism> gated_positions() {
  return {
      {.name = "forget",
       .title = "Forgetting attention (FoX)",
       .source = "Lin et al. 2025, eq. 7-9",
       .year = 2025,
       .change = Change::bias,
       .parent = "alibi",
       .formula = "s_ij = q_i . k_j / sqrt(d) + sum_(j<t<=i) ln f_t, f_t = sigmoid(w . x_t + b): a "
                  "gate per head forgets the keys before it",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal", .bias = "forget"},
       .time = "n m d / 2",
       .carries = "keys, values and gates so far",
       .cache = "2 d + 1",
       .module = "the gates of MultiHeadAttention",
       .module_kind = ModuleKind::multi_head,
       .refusal = "its gates are read from the sequence that attends to itself, and a decoder's "
                  "queries are its states; take alibi"},
  };
}

// Biases that depend on the distance only.
std::vector<Mechanism> functions_of_distance() {
  return {
      {.name = "kerple_log",
       .title = "Logarithmic kernel of the distance (KERPLE)",
       .source = "Chi et al. 2022, 5.1",
       .year = 2022,
       .change = Change::bias,
       .parent = "alibi",
       .formula = "s_ij = q_i . k_j / sqrt(d) - p ln(1 + a |i - j|)",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.bias = "kerple_log"},
       .decoder_query = "state",
       .carries = "the position"},
      {.name = "kerple_power",
       .title = "Power of the distance (KERPLE)",
       .source = "Chi et al. 2022, 5.1",
       .year = 2022,
       .change = Change::bias,
       .parent = "alibi",
       .formula = "s_ij = q_i . k_j / sqrt(d) - a |i - j|^p, 0 < p <= 2",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.bias = "kerple_power"},
       .decoder_query = "state",
       .carries = "the position"},
      {.name = "sandwich",
       .title = "Products of sinusoids (Sandwich)",
       .source = "Chi et al. 2023, 5",
       .year = 2023,
       .change = Change::bias,
       .parent = "sinusoidal",
       .formula =
           "s_ij = q_i . k_j / sqrt(d) + f sum_a (cos((i - j) / 10000^(2a/N)) - 1), a = 1 .. "
           "N/2, f = H / (8 h) of head h",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.bias = "sandwich:128"},
       .decoder_query = "state",
       .carries = "the position"},
  };
}

// Biases that depend on more than the distance.
std::vector<Mechanism> functions_of_pairs() {
  return {
      {.name = "cope",
       .title = "Contextual positions (CoPE)",
       .source = "Golovneva et al. 2024, eq. 3-5",
       .year = 2024,
       .change = Change::bias,
       .parent = "shaw",
       .formula =
           "s_ij = q_i . (k_j + e[p_ij]) / sqrt(d), p_ij = sum_(j<=t<=i) sigmoid(q_i . k_t / "
           "sqrt(d)): keys that match are counted",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal", .bias = "cope:16"},
       .decoder_query = "state",
       .space = "n m",
       .carries = "keys and values so far",
       .paths = "fused over a dense bias, composed"},
      {.name = "fire",
       .title = "Distances in shares of the position (FIRE)",
       .source = "Li et al. 2024, eq. 6-8",
       .year = 2024,
       .change = Change::bias,
       .parent = "t5",
       .formula =
           "s_ij = q_i . k_j / sqrt(d) + W_2 relu(W_1 x + b_1) + b_2, x = ln(c |i - j| + 1) / "
           "ln(c max(L, i) + 1)",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.bias = "fire:32"},
       .decoder_query = "state",
       .time = "n m (d + 32)",
       .space = "n m 32",
       .carries = "the position",
       .paths = "fused over a dense bias, composed"},
  };
}

}  // namespace

std::vector<Mechanism> recent_positions() {
  std::vector<Mechanism> all;
  for (const auto& part : {gated_positions(), functions_of_distance(), functions_of_pairs()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<Mechanism> recent_rotations() {
  return {
      {.name = "partial_rope",
       .title = "Rotation of some columns",
       .source = "Black et al. 2022, 2.1.1",
       .year = 2022,
       .change = Change::inputs,
       .parent = "rope",
       .used_by = "GPT-NeoX, Phi, StableLM",
       .formula = "s_ij = (R_i q_i) . (R_j k_j) / sqrt(d), R turns the first columns only",
       .queries = "positions of a sequence, partly rotated",
       .memory = "the same sequence, keys partly rotated",
       .relation = Relation::same,
       .carries = "the position",
       .module = "rotate() with Rotation::share",
       .module_kind = ModuleKind::partial_rotation,
       .rotates = true,
       .refusal = not_states},
      {.name = "yarn",
       .title = "Rotation with stretched slow frequencies (YaRN)",
       .source = "Peng et al. 2024, 3.2-3.4",
       .year = 2024,
       .change = Change::inputs,
       .parent = "rope",
       .used_by = "Qwen 2.5, Qwen 3, DeepSeek V2, DeepSeek V3, GPT-OSS",
       .formula =
           "as rope with f' = f (1 - r) + r f / s; r rises from 0 for 32 turns within L to 1 "
           "for 1 turn; sines and cosines times 0.1 ln s + 1",
       .queries = "positions of a sequence, rotated",
       .memory = "the same sequence, keys rotated",
       .relation = Relation::same,
       .carries = "the position",
       .module = "rotate() with Rotation::scaling",
       .module_kind = ModuleKind::yarn_rotation,
       .rotates = true,
       .rotary_rule = RotaryRule::yarn,
       .refusal = not_states},
      {.name = "llama3",
       .title = "Rotation by Llama 3's rule",
       .source = "Grattafiori et al. 2024; the configuration of Llama 3.1",
       .year = 2024,
       .change = Change::inputs,
       .parent = "rope",
       .used_by = "Llama 3.1, Llama 3.2, Llama 3.3",
       .formula = "as rope with f' = f a + (1 - a) f / s, a = clip((f L / 2 pi - 1) / 3, 0, 1)",
       .queries = "positions of a sequence, rotated",
       .memory = "the same sequence, keys rotated",
       .relation = Relation::same,
       .carries = "the position",
       .module = "rotate() with Rotation::scaling",
       .module_kind = ModuleKind::llama3_rotation,
       .rotates = true,
       .rotary_rule = RotaryRule::llama3,
       .refusal = not_states},
  };
}

}  // namespace attend
