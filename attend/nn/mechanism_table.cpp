#include "attend/nn/mechanism_table.h"

#include <string>

#include "attend/base/find_row.h"
#include "attend/nn/mechanism_table-inl.h"

namespace attend {
namespace {

using Mechanisms = std::vector<Mechanism>;

constexpr std::string_view annotations = "encoder annotations";
constexpr std::string_view before = "decoder state before the step";
constexpr std::string_view composed = "composed";
constexpr std::string_view weights_before = "the weights of the query before";

// A decoder attends to all annotations of the encoder.
Mechanisms global_attention() {
  return {
      {.name = "bahdanau",
       .title = "Additive attention",
       .source = "Bahdanau et al. 2015, eq. 4-6",
       .year = 2015,
       .change = Change::score,
       .used_by = "RNNsearch, Tacotron",
       .formula = "w_ij = softmax_j(v . tanh(W_q s_(i-1) + W_k h_j))",
       .queries = before,
       .memory = annotations,
       .choices = {.score = "additive"}},
      {.name = "additive_without_v",
       .title = "One linear layer on [query; key]",
       .source = "additive without its hidden layer",
       .year = 2015,
       .change = Change::score,
       .parent = "bahdanau",
       .formula = "w_ij = softmax_j(w_q . q_i + w_k . k_j + b): the query cancels",
       .queries = before,
       .memory = annotations,
       .choices = {.score = "linear"}},
      {.name = "luong_dot",
       .title = "Global attention, dot",
       .source = "Luong et al. 2015, eq. 7-8",
       .year = 2015,
       .change = Change::score,
       .parent = "bahdanau",
       .formula = "w_ij = softmax_j(s_i . h_j)",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "dot"},
       .decoder_query = "state"},
      {.name = "luong_general",
       .title = "Global attention, general",
       .source = "Luong et al. 2015, eq. 8",
       .year = 2015,
       .change = Change::score,
       .parent = "luong_dot",
       .formula = "w_ij = softmax_j(s_i . W h_j)",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "general"},
       .decoder_query = "state"},
  };
}

// The other scores of global attention.
Mechanisms more_global_attention() {
  return {
      {.name = "luong_concat",
       .title = "Global attention, concat",
       .source = "Luong et al. 2015, eq. 8",
       .year = 2015,
       .change = Change::score,
       .parent = "bahdanau",
       .formula = "w_ij = softmax_j(v . tanh(W [s_i; h_j])), W = [W_q W_k]",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "additive"},
       .decoder_query = "state"},
      {.name = "luong_location",
       .title = "Global attention, location",
       .source = "Luong et al. 2015, eq. 9 of the global model",
       .year = 2015,
       .change = Change::score,
       .parent = "luong_dot",
       .formula = "w_i = softmax(W s_i): a row of W for each position",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "location"},
       .decoder_query = "state",
       .time = "n m d_q",
       .space = "n m",
       .cache = "d",
       .paths = composed},
  };
}

// A decoder attends to some annotations.
Mechanisms local_attention() {
  return {
      {.name = "local_m",
       .title = "Local attention, monotonic",
       .source = "Luong et al. 2015, 3.2",
       .year = 2015,
       .change = Change::scope,
       .parent = "luong_general",
       .formula = "w_ij = softmax_j(s_i . W h_j) over |j - i| <= D",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "general", .scope = "window:5"},
       .short_scope = "window:2",
       .decoder_query = "state",
       .time = "n D d",
       .carries = "the number of the step"},
      {.name = "local_p",
       .title = "Local attention, predicted centre",
       .source = "Luong et al. 2015, eq. 9-10",
       .year = 2015,
       .change = Change::scope,
       .parent = "local_m",
       .formula = "p_i = S sigmoid(v_p . tanh(W_p s_i)); over |j - p_i| <= D, "
                  "w_ij = softmax_j(s_i . W h_j - (j - p_i)^2 / (2 (D / 2)^2))",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "general", .scope = "around:5", .bias = "gaussian"},
       .short_scope = "around:2",
       .decoder_query = "state",
       .time = "n D d"},
  };
}

// A decoder that uses earlier weights, and the Transformer's.
Mechanisms other_decoders() {
  return {
      {.name = "location_sensitive",
       .title = "Location-sensitive attention",
       .source = "Chorowski et al. 2015, eq. 8-9",
       .year = 2015,
       .change = Change::score,
       .parent = "bahdanau",
       .used_by = "Tacotron 2",
       .formula = "w_ij = softmax_j(v . tanh(W_q s_(i-1) + W_k h_j + U (F * w_(i-1))_j + b))",
       .queries = before,
       .memory = annotations,
       .choices = {.score = "location_sensitive"},
       .space = "n m d",
       .carries = weights_before},
      {.name = "coverage",
       .title = "Coverage",
       .source = "Tu et al. 2016, 3.1; See et al. 2017, eq. 10-11",
       .year = 2016,
       .change = Change::score,
       .parent = "bahdanau",
       .used_by = "pointer-generator networks",
       .formula = "w_ij = softmax_j(v . tanh(W_q s_i + W_k h_j + w_c c_j + b)), c = sum_(t<i) w_t",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "coverage"},
       .decoder_query = "state",
       .space = "n m d",
       .carries = "the sum of the weights before"},
      {.name = "cross",
       .title = "Encoder-decoder attention",
       .source = "Vaswani et al. 2017, 3.2.3",
       .year = 2017,
       .change = Change::score,
       .parent = "luong_dot",
       .used_by = "Transformer, BART, T5, Marian, Whisper",
       .formula = "w_ij = softmax_j(q_i . k_j / sqrt(d))",
       .queries = decoder_state,
       .memory = annotations,
       .choices = {.score = "scaled_dot"},
       .decoder_query = "state"},
  };
}

// Attention to one key per query.
Mechanisms one_key() {
  return {
      {.name = "hard",
       .title = "Hard attention, sampled",
       .source = "Xu et al. 2015, 4.1",
       .year = 2015,
       .change = Change::normaliser,
       .parent = "bahdanau",
       .formula = "one key is drawn from softmax_j(s_ij), in evaluation the largest; trained by "
                  "REINFORCE with a moving-average baseline and an entropy term",
       .queries = before,
       .memory = annotations,
       .choices = {.score = "additive", .normaliser = "hard"},
       .space = "n m d",
       .paths = composed,
       .module = "attend/nn/hard_attention.h for the training signal",
       .module_kind = ModuleKind::other},
      {.name = "gumbel",
       .title = "Straight-through Gumbel softmax",
       .source = "Jang et al. 2017; Maddison et al. 2017",
       .year = 2017,
       .change = Change::normaliser,
       .parent = "hard",
       .formula = "one-hot of argmax_j(s_ij + g_ij), gradient of softmax_j((s_ij + g_ij) / T)",
       .queries = before,
       .memory = annotations,
       .choices = {.score = "additive", .normaliser = "gumbel:1"},
       .space = "n m d",
       .paths = composed},
      {.name = "monotonic",
       .title = "Hard monotonic attention",
       .source = "Raffel et al. 2017, eq. 9-11",
       .year = 2017,
       .change = Change::normaliser,
       .parent = "hard",
       .formula = "w_ij = p_ij ((1 - p_(i,j-1)) w_(i,j-1) / p_(i,j-1) + w_(i-1,j)), "
                  "p = sigmoid(s + r); in evaluation the first key from the last one on with p >= "
                  "1/2",
       .queries = before,
       .memory = annotations,
       .choices = {.score = "additive", .bias = "offset", .normaliser = "monotonic"},
       .space = "n m d",
       .carries = weights_before,
       .paths = composed},
  };
}

// Memories and graphs.
Mechanisms memories() {
  return {
      {.name = "content_addressing",
       .title = "Content addressing",
       .source = "Graves et al. 2014, eq. 5-6",
       .year = 2014,
       .change = Change::score,
       .used_by = "Neural Turing Machine, DNC",
       .formula = "w_ij = softmax_j(beta q_i . m_j / (|q_i| |m_j|))",
       .queries = "a controller's key vector",
       .memory = "rows of a memory",
       .choices = {.score = "cosine"}},
      {.name = "soft_addressing",
       .title = "Soft look-up in a dictionary",
       .source = "key-value memory: Miller et al. 2016, eq. 1-2",
       .year = 2016,
       .change = Change::score,
       .parent = "content_addressing",
       .used_by = "key-value memory networks",
       .formula = "w_ij = softmax_j(q_i . k_j); the limit of large scores is plain look-up",
       .queries = any_vectors,
       .memory = "stored keys and values",
       .choices = {.score = "dot"},
       .module = "KeyValueMemory to write and to look up",
       .module_kind = ModuleKind::other},
      {.name = "squared_distance",
       .title = "Attention by distance",
       .source = "Kim et al. 2021, eq. 6",
       .year = 2021,
       .change = Change::score,
       .parent = "self",
       .formula = "w_ij = softmax_j(-|q_i - k_j|^2): a kernel regression",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "squared_distance"}},
      {.name = "absolute_distance",
       .title = "Laplace attention",
       .source = "Kim et al. 2019",
       .year = 2019,
       .change = Change::score,
       .parent = "cross",
       .used_by = "attentive neural processes",
       .formula = "w_ij = softmax_j(-sum_a |q_ia - k_ja|)",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "absolute_distance"}},
      {.name = "gat",
       .title = "Graph attention",
       .source = "Brody et al. 2022, eq. 7 (GATv2)",
       .year = 2022,
       .change = Change::score,
       .parent = "bahdanau",
       .used_by = "GATv2",
       .formula = "w_ij = softmax_j(v . leaky_relu(W_q q_i + W_k k_j))",
       .queries = "nodes",
       .memory = "their neighbours: a mask is the graph",
       .choices = {.score = "additive_leaky_relu"}},
  };
}

// Other scores with one hidden layer, and learned queries.
Mechanisms perceptrons() {
  return {
      {.name = "additive_relu",
       .title = "Perceptron score, ReLU",
       .source = "additive with another activation",
       .year = 2015,
       .change = Change::score,
       .parent = "bahdanau",
       .formula = "w_ij = softmax_j(v . max(0, W_q q_i + W_k k_j + b))",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "additive_relu"}},
      {.name = "additive_sigmoid",
       .title = "Perceptron score, sigmoid",
       .source = "additive with another activation",
       .year = 2015,
       .change = Change::score,
       .parent = "bahdanau",
       .formula = "w_ij = softmax_j(v . sigmoid(W_q q_i + W_k k_j + b))",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.score = "additive_sigmoid"}},
      {.name = "fixed_dot",
       .title = "Fixed attention, dot",
       .source = "Lin et al. 2017, eq. 5-6, with linear scores",
       .year = 2017,
       .change = Change::inputs,
       .parent = "luong_dot",
       .formula = "c = [c_1; ...; c_k], w_ij = softmax_j(u_i . k_j)",
       .queries = "k learned vectors",
       .memory = any_set,
       .relation = Relation::learned,
       .choices = {.score = "dot"},
       .time = "k m d",
       .module = "FixedAttention",
       .module_kind = ModuleKind::other,
       .refusal = "its queries are learned and do not follow the decoder; take luong_dot, or model "
                  "sets with FixedAttention"},
      {.name = "fixed_mlp",
       .title = "Fixed attention, perceptron",
       .source = "Lin et al. 2017, eq. 5-6; Yang et al. 2016, eq. 5-7",
       .year = 2016,
       .change = Change::inputs,
       .parent = "bahdanau",
       .used_by = "hierarchical attention networks",
       .formula = "c = [c_1; ...; c_k], w_ij = softmax_j(v_i . tanh(W k_j + b))",
       .queries = "k learned vectors",
       .memory = any_set,
       .relation = Relation::learned,
       .choices = {.score = "additive"},
       .time = "k m d",
       .module = "FixedAttention",
       .module_kind = ModuleKind::other,
       .refusal = "its queries are learned and do not follow the decoder; take bahdanau, or model "
                  "sets with FixedAttention"},
  };
}

}  // namespace

const std::vector<Mechanism>& mechanism_table() {
  static const std::vector<Mechanism> table = [] {
    std::vector<Mechanism> all;
    all.reserve(96);
    for (const auto& part : {global_attention(), more_global_attention(), local_attention(),
                             other_decoders(), one_key(), memories(), perceptrons(),
                             sequence_mechanisms(), normaliser_mechanisms(), module_mechanisms()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

const Mechanism& mechanism(std::string_view name) {
  return find_row(mechanism_table(), "mechanism", name);
}

}  // namespace attend
