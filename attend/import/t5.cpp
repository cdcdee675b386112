#include <algorithm>

#include "attend/import/config_keys-inl.h"
#include "attend/import/export_translator-inl.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/import/translator_layers-inl.h"
#include "attend/models/embedder.h"
#include "attend/models/transformer_config.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

constexpr const char* t5_embedding = "source_embedding.tokens.weight";
constexpr const char *output_weight = "lm_head.weight",
                     *decoder_tokens = "decoder.embed_tokens.weight";

struct T5Architecture {
  std::string name;
  bool decodes = true;  // false: only the encoder
};

// T5WithLMHeadModel is a name of 2019.
const std::vector<T5Architecture>& t5_architectures() {
  static const std::vector<T5Architecture> table = {
      {"T5ForConditionalGeneration"}, {"T5WithLMHeadModel"}, {"T5EncoderModel", false}};
  return table;
}

const std::vector<T5Architecture>& mt5_architectures() {
  static const std::vector<T5Architecture> table = {{"MT5ForConditionalGeneration"},
                                                    {"MT5EncoderModel", false}};
  return table;
}

const std::vector<ConfigKey>& t5_keys() {
  static const std::vector<ConfigKey> table = {
      {"d_model"},
      {"d_kv"},
      {"d_ff"},
      {"num_layers"},
      {"num_decoder_layers"},
      {"num_heads"},
      {"relative_attention_num_buckets"},
      {"relative_attention_max_distance"},
      {"feed_forward_proj"},
      {"dense_act_fn"},
      {"is_gated_act"},
      {"layer_norm_epsilon"},
      {"dropout_rate"},
      {"vocab_size"},
      {"scale_decoder_outputs"},
      {"is_encoder_decoder"},
      {"is_decoder", "false"},
      // Keys of training, of other classes and of tasks; and the length of texts in training.
      {"initializer_factor"},
      {"classifier_dropout"},
      {"task_specific_params"},
      {"output_past"},
      {"n_positions"}};
  return table;
}

struct T5Part {
  std::string theirs, ours;
};

std::vector<T5Part> attention_parts(const std::string& theirs, const std::string& ours) {
  std::vector<T5Part> parts;
  for (const auto& [their, our] :
       {std::pair{"q", "query"}, {"k", "key"}, {"v", "value"}, {"o", "output"}})
    parts.push_back({fmt::format("{}.{}", theirs, their), fmt::format("{}.{}", ours, our)});
  return parts;
}

// Maps of a layer. They lack biases there.
std::vector<T5Part> maps_of_layer(const LayersConfig& ours, bool reads_source) {
  std::vector<T5Part> maps = attention_parts("layer.0.SelfAttention", "self");
  if (reads_source)
    for (const T5Part& part : attention_parts("layer.1.EncDecAttention", "cross"))
      maps.push_back(part);
  const std::string theirs = reads_source ? "layer.2.DenseReluDense" : "layer.1.DenseReluDense";
  maps.push_back({theirs + (ours.gated ? ".wi_0" : ".wi"), "feed_forward.hidden"});
  if (ours.gated) maps.push_back({theirs + ".wi_1", "feed_forward.gate"});
  maps.push_back({theirs + ".wo", "feed_forward.output"});
  return maps;
}

std::vector<T5Part> norms_of_layer(bool reads_source) {
  if (!reads_source)
    return {{"layer.0.layer_norm", "self_norm"}, {"layer.1.layer_norm", "feed_forward_norm"}};
  return {{"layer.0.layer_norm", "self_norm"},
          {"layer.1.layer_norm", "cross_norm"},
          {"layer.2.layer_norm", "feed_forward_norm"}};
}

struct T5Stack {
  std::string theirs, ours;
  int64_t layers;
  bool reads_source;
};

void add_stack(const T5Stack& stack, const LayersConfig& ours, std::vector<TensorRow>& rows) {
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    const std::string their = fmt::format("{}.block.{}.", stack.theirs, layer);
    const std::string own = fmt::format("{}.layer{}_", stack.ours, layer);
    for (const T5Part& part : maps_of_layer(ours, stack.reads_source)) {
      rows.push_back({their + part.theirs + ".weight", own + part.ours + ".weight"});
      rows.push_back({"", own + part.ours + ".bias"});
    }
    for (const T5Part& part : norms_of_layer(stack.reads_source))
      rows.push_back({their + part.theirs + ".weight", own + part.ours + ".weight"});
  }
  rows.push_back({stack.theirs + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                  stack.ours + ".layer0_self.group0.buckets_table", Use::transposed});
  rows.push_back({stack.theirs + ".final_layer_norm.weight", stack.ours + ".norm.weight"});
}

constexpr const char* cross_bias =
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";

// Rows of the encoder without a decoder, which files may have.
std::vector<TensorRow> encoder_tensors(const EmbedderConfig& ours, int64_t decoder_layers) {
  std::vector<TensorRow> rest = {{decoder_tokens}, {output_weight}, {cross_bias}};
  add_stack({"decoder", "", decoder_layers, /*reads_source=*/true}, ours, rest);
  std::vector<TensorRow> rows = {
      {"shared.weight", "encoder.input.weight", Use::token_rows},
      {"encoder.embed_tokens.weight", "encoder.input.weight", Use::repeated}};
  add_stack({"encoder", "encoder.layers", ours.layers, /*reads_source=*/false}, ours, rows);
  for (const TensorRow& row : rest)
    if (!row.theirs.empty()) rows.push_back({row.theirs, {}, Use::unused});
  return rows;
}

std::vector<TensorRow> t5_tensors(const TransformerConfig& ours) {
  std::vector<TensorRow> rows = {{"shared.weight", t5_embedding, Use::token_rows},
                                 {"encoder.embed_tokens.weight", t5_embedding, Use::repeated},
                                 {decoder_tokens, t5_embedding, Use::repeated_answers}};
  add_stack({"encoder", "encoder", ours.encoder_layers, /*reads_source=*/false}, ours, rows);
  add_stack({"decoder", "decoder", ours.decoder_layers, /*reads_source=*/true}, ours, rows);
  // Files of 2019 have it; nothing reads it.
  rows.push_back({cross_bias, {}, Use::unused});
  if (shares_output(ours.tied)) {
    rows.push_back({output_weight, t5_embedding, Use::repeated_outputs});
    rows.push_back({"", "output_bias", Use::token_biases});
  } else {
    rows.push_back({output_weight, "output.weight", Use::output_rows});
    rows.push_back({"", "output.bias", Use::token_biases});
  }
  return rows;
}

// feed_forward_proj is the name of an activation, or that name after gated-.
void read_feed_forward(const JsonPosition& config, const char* usual, LayersConfig& ours) {
  constexpr const char* key = "feed_forward_proj";
  constexpr std::string_view gate = "gated-";
  std::string name = config.text(key, usual);
  ours.gated = name.starts_with(gate);
  if (ours.gated) name = name.substr(gate.size());
  if (ours.gated && name == "gelu") name = "gelu_new";  // as transformers computes it
  const Json named = {{key, name}};
  ours.activation = activation_in({named, config.file()}, key);
  if (config.has("dense_act_fn") && activation_in(config, "dense_act_fn") != ours.activation)
    config.member("dense_act_fn").refuse("contradicts {}; make them alike", key);
  if (config.flag("is_gated_act", ours.gated) != ours.gated)
    config.member("is_gated_act").refuse("contradicts {}; make them alike", key);
}

void read_buckets(const JsonPosition& config, LayersConfig& ours) {
  constexpr const char *count_key = "relative_attention_num_buckets",
                       *distance_key = "relative_attention_max_distance";
  const int64_t count = config.has(count_key) ? size_in(config, count_key, 1 << 20) : 32;
  const int64_t distance = config.has(distance_key) ? size_in(config, distance_key, 1 << 20) : 128;
  if (count < 4) config.member(count_key).refuse("is {}; 4 and more are read", count);
  if (distance <= count / 2)
    config.member(config.has(distance_key) ? distance_key : count_key)
        .refuse("leaves {} buckets up to a distance of {}; the distance must be over half of them",
                count, distance);
  ours.self.mechanism = "t5";
  ours.self.bias = fmt::format("buckets:{},{}", count, distance);
  ours.shared_bias = true;
}

void read_t5_layers(const JsonPosition& config, const char* feed_forward, LayersConfig& ours) {
  ours.depth = size_in(config, "d_model", 65536);
  ours.heads = size_in(config, "num_heads", 1024);
  const int64_t head_depth = size_in(config, "d_kv", 65536);
  ours.head_depth = head_depth * ours.heads == ours.depth ? 0 : head_depth;
  ours.feed_forward = size_in(config, "d_ff", 262144);
  ours.epsilon = real_in(config, "layer_norm_epsilon", 1e-6, 1e-15, 1);
  ours.dropout = ours.attention_dropout = real_in(config, "dropout_rate", 0.1, 0, max_dropout);
  read_buckets(config, ours);
  read_feed_forward(config, feed_forward, ours);
  ours.norm = NormKind::rms;
  ours.fixed_biases = true;
  ours.positions = Positions::none;
}

int64_t encoder_layers_in(const JsonPosition& config) { return size_in(config, "num_layers", 256); }

int64_t decoder_layers_in(const JsonPosition& config) {
  return config.has("num_decoder_layers") ? size_in(config, "num_decoder_layers", 256)
                                          : encoder_layers_in(config);
}

constexpr int64_t longest_source = 1 << 20;  // positions are not limited

void read_t5_encoder(const JsonPosition& config, const char* feed_forward, ForeignModel& model) {
  model.config.type = "embedder";
  auto& ours = model.config.of<EmbedderConfig>();
  read_t5_layers(config, feed_forward, ours);
  ours.layers = encoder_layers_in(config);
  ours.maximum_source_length = longest_source;
  model.tensors = encoder_tensors(ours, decoder_layers_in(config));
}

}  // namespace

void set_t5_output(Tied tied, ForeignModel& model) {
  auto& ours = model.config.of<TransformerConfig>();
  ours.tied = tied;
  model.tensors = t5_tensors(ours);
}

namespace {

// Newer versions of transformers call every output tied, and read another tensor all the same.
void complete_output(const TensorFile& theirs, ForeignModel& model) {
  const auto find = [&](const char* name) {
    const auto found = theirs.tensors.find(name);
    return found == theirs.tensors.end() ? at::Tensor() : found->second;
  };
  const at::Tensor shared = find("shared.weight");
  const bool is_own = has_another_table(shared, find(output_weight));
  set_t5_output(is_own ? Tied::inputs : Tied::all, model);
  if (has_another_table(shared, find(decoder_tokens)))
    model.config.of<TransformerConfig>().shared_tokens.clear();
}

// Reads a translator, with its fixed tokens.
void read_t5_translator(const JsonPosition& config, const char* feed_forward, ForeignModel& model) {
  model.config.type = "transformer";
  auto& ours = model.config.of<TransformerConfig>();
  read_t5_layers(config, feed_forward, ours);
  ours.source.score = "dot";
  ours.encoder_layers = encoder_layers_in(config);
  ours.decoder_layers = decoder_layers_in(config);
  ours.scale_embedding = false;
  // For tokens that are never answered.
  ours.output_bias = ours.fixed_output_bias = true;
  ours.maximum_source_length = longest_source;
  set_t5_output(config.flag("tie_word_embeddings", true) ? Tied::all : Tied::inputs, model);
  model.complete = complete_output;
  const auto token = [&](const char* key, int64_t otherwise) {
    return config.has(key) ? token_in(config, key, model.tokens) : otherwise;
  };
  const int64_t padding = token("pad_token_id", 0);
  const int64_t begin = token("decoder_start_token_id", padding);
  const int64_t end =
      config.has("eos_token_id") ? end_token_in(config, model.tokens, model.notes) : 1;
  if (std::max({padding, begin, end}) >= model.tokens)
    config.member("vocab_size").refuse("is {}, too few for the special tokens", model.tokens);
  // Padding may be answered, as any token.
  model.fixed = {.rows = {padding, begin, end, end}, .scores = {{{}, {}, end, {}}}};
  ours.shared_tokens = shared_tokens(*model.fixed);
}

ForeignModel read_t5_like(const JsonPosition& config, const std::vector<T5Architecture>& classes,
                          const char* feed_forward) {
  ForeignModel model;
  check_values(config, t5_keys(), model.notes);
  const T5Architecture& architecture = architecture_in(config, classes);
  model.architecture = architecture.name;
  model.layers = encoder_layers_in(config);
  model.tokens = size_in(config, "vocab_size", max_tokens);
  model.older = {.special = {.unknown = "<unk>", .end = "</s>", .padding = "<pad>"},
                 .pieces = "spiece.model",
                 .sentinels = 100,
                 .bytes = "ByT5Tokenizer"};
  if (architecture.decodes && !config.flag("is_encoder_decoder", true))
    config.member("is_encoder_decoder").refuse("is false, and {} decodes", architecture.name);
  (architecture.decodes ? read_t5_translator : read_t5_encoder)(config, feed_forward, model);
  return model;
}

std::vector<ForeignClass> classes_of(const std::vector<T5Architecture>& architectures) {
  std::vector<ForeignClass> classes;
  for (const T5Architecture& row : architectures) {
    classes.push_back({.name = row.name});
    if (row.decodes) classes.back().required = {"decoder.final_layer_norm.weight"};
  }
  return classes;
}

}  // namespace

std::vector<ForeignClass> t5_classes() { return classes_of(t5_architectures()); }

std::vector<ForeignClass> mt5_classes() { return classes_of(mt5_architectures()); }

// T5 and its kin with a gated feed-forward network and an output of its own (Raffel et al. 2020;
// Shazeer 2020). Answers begin with the vector of padding.
ForeignModel read_t5(const JsonPosition& config) {
  ForeignModel model = read_t5_like(config, t5_architectures(), "relu");
  model.config.of<TransformerConfig>().scale_output =
      config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true));
  return model;
}

// mT5 (Xue et al. 2021). Its output is never scaled.
ForeignModel read_mt5(const JsonPosition& config) {
  return read_t5_like(config, mt5_architectures(), "gated-gelu");
}

}  // namespace attend::internal
