#include "attend/nn/mechanism_table-inl.h"

namespace attend {
namespace {

using Mechanisms = std::vector<Mechanism>;

constexpr std::string_view multi_head = "MultiHeadAttention";
constexpr std::string_view within_sequence =
    "its queries are the sequence that it reads, and a decoder's queries are its states; take "
    "cross (scaled_dot over the source), or MultiHeadAttention";
constexpr std::string_view summed =
    "it never forms the weights that explain answers; take cross, which costs no more at the "
    "lengths of a source";

// Attention of a sequence to itself.
Mechanisms own_sequence() {
  return {
      {.name = "self",
       .title = "Self-attention",
       .source = "Vaswani et al. 2017, eq. 1",
       .year = 2017,
       .change = Change::inputs,
       .parent = "cross",
       .used_by = "Transformer, BERT, ViT",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d))",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .module = multi_head,
       .module_kind = ModuleKind::multi_head,
       .refusal = within_sequence},
      {.name = "masked_self",
       .title = "Masked self-attention",
       .source = "Vaswani et al. 2017, 3.2.3",
       .year = 2017,
       .change = Change::scope,
       .parent = "self",
       .used_by = "Transformer, GPT-2",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d)) over j <= i",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "causal"},
       .time = "n m d / 2",
       .carries = "keys and values so far",
       .module = multi_head,
       .module_kind = ModuleKind::multi_head,
       .refusal = within_sequence},
  };
}

// Attention of a layer to its own earlier states.
Mechanisms earlier_states() {
  return {
      {.name = "intra",
       .title = "Intra-attention (LSTMN)",
       .source = "Cheng et al. 2016, eq. 4-9",
       .year = 2016,
       .change = Change::inputs,
       .parent = "bahdanau",
       .used_by = "LSTMN",
       .formula = "w_ij = softmax_j(v . tanh(W_h h_j + W_x x_i + W_c c~_(i-1))) over j < i",
       .queries = "the token and the summary before",
       .memory = "the layer's own states before",
       .relation = Relation::earlier,
       .choices = {.score = "additive", .scope = "causal:-1"},
       .carries = "all states so far",
       .module = "IntraAttentionCell",
       .module_kind = ModuleKind::other,
       .refusal = "it reads only its layer's own past; take bahdanau, or the LSTMN module"},
      {.name = "intra_decoder",
       .title = "Intra-decoder attention",
       .source = "Paulus et al. 2017, eq. 5-8",
       .year = 2017,
       .change = Change::inputs,
       .parent = "luong_general",
       .formula = "w_ij = softmax_j(s_i . W s_j) over j < i",
       .queries = decoder_state,
       .memory = "the decoder's states before",
       .relation = Relation::earlier,
       .choices = {.score = "general", .scope = "causal:-1"},
       .carries = "all states so far",
       .module = "IntraDecoderAttention",
       .module_kind = ModuleKind::intra_decoder,
       .refusal = "it reads only the decoder's own past; take luong_general, or add the "
                  "intra-decoder module"},
  };
}

// Attention within windows.
Mechanisms sparse() {
  return {
      {.name = "sliding_window",
       .title = "Sliding window",
       .source = "Beltagy et al. 2020, 3.1",
       .year = 2020,
       .change = Change::scope,
       .parent = "self",
       .used_by = "Longformer, Mistral 7B, Gemma 2, ModernBERT",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d)) over |j - i| <= R",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "window:5"},
       .short_scope = "window:1",
       .decoder_query = "state",
       .time = "n R d",
       .carries = "the position",
       .cache = "2 d, of at most R tokens"},
      {.name = "dilated",
       .title = "Dilated window",
       .source = "Beltagy et al. 2020, 3.1",
       .year = 2020,
       .change = Change::scope,
       .parent = "sliding_window",
       .used_by = "Longformer",
       .formula = "a window with only the keys at multiples of the dilation",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "dilated:8,2"},
       .short_scope = "dilated:4,2",
       .decoder_query = "state",
       .time = "n R d / dilation",
       .carries = "the position",
       .cache = "2 d, of at most R tokens"},
  };
}

// Attention between chosen pairs of positions.
Mechanisms some_pairs() {
  return {
      {.name = "global_tokens",
       .title = "Window and global tokens (Longformer)",
       .source = "Beltagy et al. 2020, 3.1",
       .year = 2020,
       .change = Change::scope,
       .parent = "sliding_window",
       .used_by = "Longformer",
       .formula = "|j - i| <= R, or i < N, or j < N",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.scope = "window:5 | global:1"},
       .short_scope = "window:1 | global:1",
       .decoder_query = "state",
       .time = "n (R + N) d",
       .carries = "the position",
       .cache = "2 d, of at most R + N tokens"},
      {.name = "block_sparse",
       .title = "Block sparse (BigBird)",
       .source = "Child et al. 2019; Zaheer et al. 2020",
       .year = 2019,
       .change = Change::scope,
       .parent = "self",
       .used_by = "Sparse Transformer, BigBird",
       .formula = "the blocks of a layout [query blocks, key blocks]: windows, global, random",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .time = "blocks d",
       .carries = "the position",
       .module = "block_sparse(layout, block) as AttentionSpec::scope",
       .module_kind = ModuleKind::blocks,
       .refusal = "its blocks are a tensor, which a configuration cannot hold; take global_tokens"},
  };
}

// Running sums in linear time.
Mechanisms linear_time() {
  return {
      {.name = "linear",
       .title = "Linear attention",
       .source = "Katharopoulos et al. 2020, eq. 4-12",
       .year = 2020,
       .change = Change::normaliser,
       .parent = "self",
       .formula = "w_ij = f(q_i) . f(k_j) / sum_j f(q_i) . f(k_j), f(x) = elu(x) + 1",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.score = "elu_features", .normaliser = "linear"},
       .time = "(n + m) d^2",
       .carries = "sums of f(k_j) v_j and f(k_j)",
       .cache = "d^2 + d in all",
       .paths = "running sums, composed",
       .refusal = summed},
      {.name = "performer",
       .title = "Performer (FAVOR+)",
       .source = "Choromanski et al. 2021, eq. 5-7",
       .year = 2021,
       .change = Change::score,
       .parent = "linear",
       .used_by = "Performer",
       .formula = "w_ij = f(q_i) . f(k_j) / sum_j f(q_i) . f(k_j), f positive orthogonal random "
                  "features of F numbers",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.score = "positive_features", .normaliser = "linear"},
       .time = "(n + m) F d",
       .carries = "sums of f(k_j) v_j and f(k_j)",
       .cache = "F (d + 1) in all",
       .paths = "running sums, composed",
       .refusal = summed},
  };
}

// Attention to a shortened sequence, and convolutions.
Mechanisms shortened() {
  return {
      {.name = "linformer",
       .title = "Linformer",
       .source = "Wang et al. 2020, eq. 7",
       .year = 2020,
       .change = Change::module,
       .parent = "self",
       .used_by = "Linformer",
       .formula = "w_ij = softmax_j(q_i . (E K)_j / sqrt(d)), E of k x m: the sequence shortened",
       .queries = sequence_positions,
       .memory = "the same sequence, shortened to k",
       .relation = Relation::same,
       .time = "n k d",
       .cache = "2 d, of k tokens",
       .module = "LengthProjection",
       .module_kind = ModuleKind::length_projection,
       .refusal = "it mixes the positions of the source before weighting, so no weight belongs to "
                  "a token; take cross"},
      {.name = "convolution",
       .title = "Attention that is a convolution",
       .source = "Cordonnier et al. 2020, theorem 1",
       .year = 2020,
       .change = Change::module,
       .parent = "shaw",
       .formula =
           "w_ij = softmax_j(-alpha |delta_ij - Delta_h|^2), one head per place of the kernel",
       .queries = "pixels",
       .memory = "the same image",
       .relation = Relation::same,
       .module = "ConvolutionAttention",
       .module_kind = ModuleKind::convolution,
       .refusal = "it needs images of two axes; take local_m for a source of one axis"},
  };
}

// Positions as biases.
Mechanisms relative_positions() {
  return {
      {.name = "alibi",
       .title = "Linear bias by distance (ALiBi)",
       .source = "Press et al. 2022",
       .year = 2022,
       .change = Change::bias,
       .parent = "shaw",
       .used_by = "BLOOM, MPT",
       .formula = "s_ij = q_i . k_j / sqrt(d) - m |i - j|",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.bias = "alibi"},
       .decoder_query = "state",
       .carries = "the position"},
      {.name = "t5",
       .title = "Buckets of distances (T5)",
       .source = "Raffel et al. 2020, 2.1",
       .year = 2020,
       .change = Change::bias,
       .parent = "shaw",
       .used_by = "T5, flan-T5, mT5",
       .formula = "s_ij = q_i . k_j + t[bucket(j - i)]",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.score = "dot", .bias = "buckets:32"},
       .decoder_query = "state",
       .carries = "the position"},
      {.name = "shaw",
       .title = "Relative keys",
       .source = "Shaw et al. 2018, eq. 4",
       .year = 2018,
       .change = Change::bias,
       .parent = "self",
       .used_by = "Music Transformer",
       .formula = "s_ij = q_i . (k_j + r[clip(j - i, -L, L)]) / sqrt(d)",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.bias = "relative_keys:16"},
       .decoder_query = "state",
       .carries = "the position"},
      {.name = "grid",
       .title = "Relative positions on a grid",
       .source = "Liu et al. 2021, eq. 4",
       .year = 2021,
       .change = Change::bias,
       .parent = "shaw",
       .used_by = "Swin",
       .formula = "s_ij = q_i . k_j / sqrt(d) + t[y_j - y_i][x_j - x_i]",
       .queries = "pixels",
       .memory = "the same image",
       .relation = Relation::same,
       .choices = {.bias = "grid:8x8"},
       .refusal = "the positions of a source have one axis and no grid; take shaw or t5"},
  };
}

// Vectors of distances.
Mechanisms distance_vectors() {
  return {
      {.name = "disentangled",
       .title = "Disentangled attention (DeBERTa)",
       .source = "He et al. 2021, eq. 4",
       .year = 2021,
       .change = Change::bias,
       .parent = "shaw",
       .used_by = "DeBERTa, DeBERTa-v2, DeBERTa-v3",
       .formula = "s_ij = (q_i . k_j + q_i . r[c_ij] + k_j . p[c_ij]) / sqrt(3 d), "
                  "c_ij = clip(i - j + K, 0, 2 K - 1)",
       .queries = sequence_positions,
       .memory = same_sequence,
       .relation = Relation::same,
       .choices = {.score = "disentangled_dot",
                   .bias = "content_to_position:16 + position_to_content:16"},
       .decoder_query = "state",
       .space = "(n + m) (d + 2 K)",
       .carries = "the position"},
  };
}

// Positions in queries and keys.
Mechanisms input_positions() {
  return {
      {.name = "rope",
       .title = "Rotary positions (RoPE)",
       .source = "Su et al. 2021, eq. 12-16",
       .year = 2021,
       .change = Change::inputs,
       .parent = "sinusoidal",
       .used_by = "Llama, Mistral, Qwen, Gemma, ModernBERT",
       .formula = "s_ij = (R_i q_i) . (R_j k_j) / sqrt(d), which depends only on i - j",
       .queries = "positions of a sequence, rotated",
       .memory = "the same sequence, keys rotated",
       .relation = Relation::same,
       .carries = "the position",
       .module = "rotate() on queries and keys",
       .module_kind = ModuleKind::rotation,
       .rotates = true,
       .refusal = "it rotates positions of one sequence, not a decoder's states and annotations; "
                  "take shaw"},
      {.name = "sinusoidal",
       .title = "Sinusoidal positions",
       .source = "Vaswani et al. 2017, 3.5",
       .year = 2017,
       .change = Change::inputs,
       .parent = "self",
       .used_by = "Transformer, Marian, Whisper",
       .formula = "x_i + p_i, p_(i,2a) = sin(i / 10000^(2a/d)), p_(i,2a+1) = cos",
       .queries = "positions of a sequence, p added",
       .memory = same_sequence,
       .relation = Relation::same,
       .module = "sinusoidal_positions() added to the inputs",
       .module_kind = ModuleKind::sinusoids,
       .refusal = "a recurrent encoder already reads tokens in order; take cross"},
      {.name = "learned_positions",
       .title = "Learned positions",
       .source = "Gehring et al. 2017, 3.1",
       .year = 2017,
       .change = Change::inputs,
       .parent = "self",
       .used_by = "BERT, GPT-2, ViT",
       .formula = "x_i + p_i, p trained, up to a maximum length",
       .queries = "positions of a sequence, p added",
       .memory = same_sequence,
       .relation = Relation::same,
       .module = "LearnedPositions",
       .module_kind = ModuleKind::learned_positions,
       .refusal = "a recurrent encoder already reads tokens in order; take cross"},
  };
}

// Normalisers, each with its most common score.
Mechanisms normalisers() {
  return {
      {.name = "temperature",
       .title = "Softmax with a temperature",
       .source = "Hinton et al. 2015, eq. 1",
       .year = 2015,
       .change = Change::normaliser,
       .parent = "bahdanau",
       .formula = "w_ij = softmax_j(s_ij / T)",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "additive", .normaliser = "temperature:2"}},
      {.name = "sink",
       .title = "Attention with a sink",
       .source = "Xiao et al. 2024",
       .year = 2024,
       .change = Change::bias,
       .parent = "masked_self",
       .used_by = "gpt-oss",
       .formula = "w_ij = exp(s_ij) / (exp(sink) + sum_j exp(s_ij))",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "additive", .bias = "sink"}},
      {.name = "sigmoid",
       .title = "Sigmoid attention",
       .source = "Ramapuram et al. 2024, eq. 3",
       .year = 2024,
       .change = Change::normaliser,
       .parent = "self",
       .formula = "w_ij = sigmoid(s_ij + b)",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "additive", .bias = "offset", .normaliser = "sigmoid"}},
  };
}

// Normalisers with weights of 0 or below.
Mechanisms sparse_normalisers() {
  return {
      {.name = "unnormalised",
       .title = "Unnormalised attention",
       .source = "de Brebisson and Vincent 2016",
       .year = 2016,
       .change = Change::normaliser,
       .parent = "luong_dot",
       .formula = "w_ij = q_i . k_j / sqrt(d)",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.normaliser = "none"},
       .decoder_query = "state"},
      {.name = "sparsemax",
       .title = "Sparsemax",
       .source = "Martins and Astudillo 2016, eq. 3",
       .year = 2016,
       .change = Change::normaliser,
       .parent = "bahdanau",
       .formula = "w_i = the point of the simplex nearest to s_i",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "additive", .normaliser = "sparsemax"}},
      {.name = "entmax",
       .title = "Entmax, alpha 1.5",
       .source = "Peters et al. 2019",
       .year = 2019,
       .change = Change::normaliser,
       .parent = "sparsemax",
       .formula = "w_ij = max(0, (s_ij - t_i) / 2)^2, t_i so that sum_j w_ij = 1",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "additive", .normaliser = "entmax15"}},
  };
}

}  // namespace

std::vector<Mechanism> sequence_mechanisms() {
  Mechanisms all;
  all.reserve(32);
  for (const auto& part :
       {own_sequence(), earlier_states(), sparse(), some_pairs(), linear_time(), shortened(),
        relative_positions(), distance_vectors(), recent_positions(), input_positions(),
        recent_rotations(), normalisers(), sparse_normalisers()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace attend
