#include "attend/import/config_keys-inl.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/language_model_config.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

struct Gpt2Architecture {
  std::string name;
};

const std::vector<Gpt2Architecture>& gpt2_architectures() {
  static const std::vector<Gpt2Architecture> table = {{"GPT2LMHeadModel"}};
  return table;
}

const std::vector<ConfigKey>& gpt2_keys() {
  static const std::vector<ConfigKey> table = {{"n_embd"},
                                               {"n_layer"},
                                               {"n_head"},
                                               {"n_positions"},
                                               {"n_inner"},
                                               {"vocab_size"},
                                               {"activation_function"},
                                               {"layer_norm_epsilon"},
                                               {"resid_pdrop"},
                                               {"embd_pdrop"},
                                               {"attn_pdrop"},
                                               {"scale_attn_weights", "true"},
                                               {"scale_attn_by_inverse_layer_idx", "false"}};
  return table;
}

// Their weights have a row per input number. Query, key and value are one layer there.
std::vector<TensorRow> gpt2_tensors() {
  std::vector<TensorRow> rows = {{"wte.weight", "embedding.tokens.weight", Use::token_rows},
                                 {"wpe.weight", "embedding.positions.table", Use::position_rows},
                                 {"ln_f.weight", "stack.norm.weight"},
                                 {"ln_f.bias", "stack.norm.bias"},
                                 {"lm_head.weight", "embedding.tokens.weight", Use::repeated},
                                 {"", "output_bias", Use::token_biases},
                                 {"h.{}.attn.bias", {}, Use::unused},
                                 {"h.{}.attn.masked_bias", {}, Use::unused}};
  struct Part {
    const char *theirs, *ours;
    int64_t part = 0, parts = 1;
  };
  for (const Part& layer :
       {Part{"attn.c_attn", "self.query", 0, 3}, Part{"attn.c_attn", "self.key", 1, 3},
        Part{"attn.c_attn", "self.value", 2, 3}, Part{"attn.c_proj", "self.output"},
        Part{"mlp.c_fc", "feed_forward.hidden"}, Part{"mlp.c_proj", "feed_forward.output"}})
    for (const auto& [kind, use] : {std::pair{"weight", Use::transposed}, {"bias", Use::copied}})
      rows.push_back({fmt::format("h.{{}}.{}.{}", layer.theirs, kind),
                      fmt::format("stack.layer{{}}_{}.{}", layer.ours, kind), use, layer.part,
                      layer.parts});
  for (const Part& norm : {Part{"ln_1", "self_norm"}, Part{"ln_2", "feed_forward_norm"}})
    for (const char* kind : {"weight", "bias"})
      rows.push_back({fmt::format("h.{{}}.{}.{}", norm.theirs, kind),
                      fmt::format("stack.layer{{}}_{}.{}", norm.ours, kind)});
  return rows;
}

void read_layers(const JsonPosition& config, LanguageModelConfig& ours) {
  ours.depth = size_in(config, "n_embd", 65536);
  ours.layers = size_in(config, "n_layer", 256);
  ours.heads = size_in(config, "n_head", 1024);
  ours.feed_forward = config.has("n_inner") ? size_in(config, "n_inner", 262144) : 4 * ours.depth;
  ours.context = size_in(config, "n_positions", 1 << 20);
  if (ours.context < 4)
    config.member("n_positions").refuse("is {}; 4 and more are read", ours.context);
  if (ours.depth % ours.heads != 0)
    config.member("n_head").refuse("is {}, which does not divide n_embd, {}", ours.heads,
                                   ours.depth);
  ours.activation = activation_in(config, "activation_function", "gelu_new");
  ours.epsilon = real_in(config, "layer_norm_epsilon", 1e-5, 1e-15, 1);
  ours.dropout = real_in(config, "resid_pdrop", 0.1, 0, max_dropout);
  ours.attention_dropout = real_in(config, "attn_pdrop", 0.1, 0, max_dropout);
  ours.positions = Positions::learned;
  ours.scale_embedding = false;
  // EOS replaces their end token in answers.
  ours.output_bias = ours.fixed_output_bias = true;
  ours.start = false;
}

}  // namespace

std::vector<ForeignClass> gpt2_classes() {
  return {{.name = gpt2_architectures()[0].name, .others = {"lm_head.weight"}}};
}

// GPT-2 (Radford et al. 2019). Its only special token begins and ends texts.
ForeignModel read_gpt2(const JsonPosition& config) {
  ForeignModel model;
  check_values(config, gpt2_keys(), model.notes);
  model.architecture = architecture_in(config, gpt2_architectures()).name;
  model.config.type = "lm";
  auto& ours = model.config.of<LanguageModelConfig>();
  read_layers(config, ours);
  model.prefix = "transformer.";
  model.tensors = gpt2_tensors();
  model.layers = ours.layers;
  model.tokens = size_in(config, "vocab_size", max_tokens);
  model.positions = ours.context;
  model.output = "lm_head.weight";
  model.tied = config.flag("tie_word_embeddings", true);
  constexpr int64_t end_of_text = 50256;  // transformers' default; older files lack the key
  const bool is_left_out = !config.has("eos_token_id") && end_of_text < model.tokens;
  const int64_t end = is_left_out ? end_of_text : end_token_in(config, model.tokens, model.notes);
  const int64_t begin =
      config.has("bos_token_id") ? token_in(config, "bos_token_id", model.tokens) : end;
  model.fixed = {.rows = {end, begin, end, end}, .scores = {{{}, {}, end, {}}}};
  ours.shared_tokens = shared_tokens(*model.fixed);
  model.older = {.special = {.unknown = "<|endoftext|>"}};
  return model;
}

}  // namespace attend::internal
