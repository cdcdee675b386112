#include <algorithm>
#include <utility>

#include "attend/import/encoder-inl.h"
#include "attend/models/classifier.h"
#include "attend/models/masked_language_model.h"
#include "attend/models/passage_reader.h"
#include "attend/models/tagger.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

const std::vector<EncoderArchitecture>& modernbert_architectures() {
  static const std::vector<EncoderArchitecture> table = {
      {"ModernBertModel"},
      {"ModernBertForMaskedLM", EncoderHead::masked_words},
      {"ModernBertForSequenceClassification", EncoderHead::labels},
      {"ModernBertForTokenClassification", EncoderHead::token_labels},
      {"ModernBertForQuestionAnswering", EncoderHead::span}};
  return table;
}

const std::vector<ConfigKey>& modernbert_keys() {
  static const std::vector<ConfigKey> table = {{"hidden_size"},
                                               {"num_hidden_layers"},
                                               {"num_attention_heads"},
                                               {"intermediate_size"},
                                               {"hidden_activation"},
                                               {"max_position_embeddings"},
                                               {"norm_eps"},
                                               {"norm_bias"},
                                               {"attention_bias"},
                                               {"mlp_bias"},
                                               {"decoder_bias"},
                                               {"classifier_bias"},
                                               {"attention_dropout"},
                                               {"embedding_dropout"},
                                               {"mlp_dropout"},
                                               {"classifier_dropout"},
                                               {"classifier_activation"},
                                               {"classifier_pooling"},
                                               {"vocab_size"},
                                               {"layer_types"},
                                               {"global_attn_every_n_layers"},
                                               {"local_attention"},
                                               {"rope_parameters"},
                                               {"global_rope_theta"},
                                               {"local_rope_theta"},
                                               // BERT keys without effect in released files.
                                               {"layer_norm_eps"},
                                               {"position_embedding_type"}};
  return table;
}

// Whether each layer reads only a window.
std::vector<bool> layers_with_window(const JsonPosition& config, int64_t layers) {
  std::vector<bool> local;
  if (!config.has("layer_types")) {
    const int64_t every = config.has("global_attn_every_n_layers")
                              ? size_in(config, "global_attn_every_n_layers", 256)
                              : 3;
    for (int64_t i = 0; i < layers; ++i) local.push_back(i % every != 0);
    return local;
  }
  const JsonPosition types = config.member("layer_types");
  for (const JsonPosition& type : types.list()) {
    const std::string name = type.text();
    local.push_back(name == "sliding_attention");
    if (!local.back() && name != "full_attention")
      type.refuse("is {}, which is not read; full_attention and sliding_attention are",
                  in_quotes(name));
  }
  if (std::ssize(local) != layers)
    types.refuse("has {} entries, and num_hidden_layers is {}", local.size(), layers);
  return local;
}

// The rotary base of layers of a type, for which transformers 4 has a key of its own.
double rotary_base(const JsonPosition& config, const char* type, const char* older,
                   double otherwise) {
  constexpr double maximum = 1e12;
  const double base = real_in(config, older, otherwise, 1.001, maximum);
  if (!config.has("rope_parameters")) return base;
  const JsonPosition all = config.member("rope_parameters");
  if (!all.has(type)) return base;
  const JsonPosition own = all.member(type);
  check_keys(own, {{"rope_type", R"("default")"}, {"rope_theta"}});
  return real_in(own, "rope_theta", base, 1.001, maximum);
}

// Sets the layers in turn, by their shortest repeated run.
void read_turns(const JsonPosition& config, SourceEncoderConfig& encoder) {
  const std::vector<bool> has_window = layers_with_window(config, encoder.layers);
  size_t period = 1;
  const auto repeats = [&] {
    for (size_t i = period; i < has_window.size(); ++i)
      if (has_window[i] != has_window[i - period]) return false;
    return true;
  };
  while (!repeats()) ++period;
  if (config.has("rope_parameters"))
    check_keys(config.member("rope_parameters"), {{"full_attention"}, {"sliding_attention"}});
  const double global_base = rotary_base(config, "full_attention", "global_rope_theta", 160000);
  // In transformers 4, null means the base of the layers that read the whole text.
  const auto local = config.value().find("local_rope_theta");
  const bool is_global = local != config.value().end() && local->is_null();
  const double local_base =
      rotary_base(config, "sliding_attention", "local_rope_theta", is_global ? global_base : 10000);
  const int64_t width =
      config.has("local_attention") ? size_in(config, "local_attention", 1 << 20) : 128;
  encoder.rotary_bases.clear();
  for (size_t i = 0; i < period; ++i) {
    const char* between = i == 0 ? "" : "; ";
    encoder.scopes += between + (has_window[i] ? fmt::format("window:{}", width / 2) : "all");
    encoder.rotary_bases += fmt::format("{}{}", between, has_window[i] ? local_base : global_base);
  }
}

void read_layers(const JsonPosition& config, SourceEncoderConfig& encoder) {
  const LayerKeys keys = {.activation = "hidden_activation"};
  read_layer_sizes(config, keys, encoder);
  check_rotated_heads(config, keys, encoder);
  read_turns(config, encoder);
  encoder.self.bias = MechanismSettings::no_bias;
  encoder.positions = Positions::rotary;
  encoder.gated = true;
  encoder.normalise_input = true;
  encoder.first_norm = false;
  encoder.epsilon = real_in(config, "norm_eps", 1e-5, 1e-15, 1);
  encoder.dropout = real_in(config, "mlp_dropout", 0, 0, max_dropout);
  encoder.attention_dropout = real_in(config, "attention_dropout", 0, 0, max_dropout);
  encoder.maximum_source_length = size_in(config, "max_position_embeddings", 1 << 20);
}

// Collects rows. A bias is zeros if a key of config.json says that it does not exist.
class ModernRows {
 public:
  explicit ModernRows(const JsonPosition& config) : config_(config) {}

  void add(const std::string& theirs, const std::string& ours, const char* bias_key,
           bool otherwise = false, TensorRow how = {}) {
    const bool has_bias = config_.flag(bias_key, otherwise);
    for (const char* kind : {".weight", ".bias"}) {
      const bool is_there = has_bias || kind == std::string_view(".weight");
      how.theirs = is_there ? theirs + kind : "";
      how.ours = ours + kind;
      rows_.push_back(how);
    }
  }
  void add(const TensorRow& row) { rows_.push_back(row); }
  bool has(const char* key, bool otherwise) const { return config_.flag(key, otherwise); }

  std::vector<TensorRow> take() { return std::move(rows_); }

 private:
  const JsonPosition& config_;
  std::vector<TensorRow> rows_;
};

// Theirs rotate the halves of heads together, ours neighbours.
void add_layers(int64_t layers, ModernRows& rows) {
  struct Part {
    const char *theirs, *ours, *bias_key;
    TensorRow how = {};
  };
  for (const Part& part :
       {Part{"attn.Wqkv",
             "self.query",
             "attention_bias",
             {.use = Use::rotary_rows, .part = 0, .parts = 3}},
        Part{"attn.Wqkv",
             "self.key",
             "attention_bias",
             {.use = Use::rotary_rows, .part = 1, .parts = 3}},
        Part{"attn.Wqkv", "self.value", "attention_bias", {.part = 2, .parts = 3}},
        Part{"attn.Wo", "self.output", "attention_bias"},
        Part{"mlp_norm", "feed_forward_norm", "norm_bias"},
        Part{"mlp.Wi", "feed_forward.hidden", "mlp_bias", {.part = 0, .parts = 2}},
        Part{"mlp.Wi", "feed_forward.gate", "mlp_bias", {.part = 1, .parts = 2}},
        Part{"mlp.Wo", "feed_forward.output", "mlp_bias"}})
    rows.add(fmt::format("layers.{{}}.{}", part.theirs),
             fmt::format("encoder.layers.layer{{}}_{}", part.ours), part.bias_key, false, part.how);
  for (int64_t layer = 1; layer < layers; ++layer)
    rows.add(fmt::format("layers.{}.attn_norm", layer),
             fmt::format("encoder.layers.layer{}_self_norm", layer), "norm_bias");
}

std::vector<TensorRow> modernbert_tensors(const JsonPosition& config, int64_t layers) {
  ModernRows rows(config);
  rows.add({"embeddings.tok_embeddings.weight", "encoder.input.weight", Use::token_rows});
  rows.add("embeddings.norm", "encoder.norm", "norm_bias");
  rows.add("final_norm", "encoder.layers.norm", "norm_bias");
  add_layers(layers, rows);
  return rows.take();
}

std::vector<TensorRow> head_tensors(const JsonPosition& config, EncoderHead head) {
  ModernRows rows(config);
  if (head == EncoderHead::none) return {};
  const bool pooled = head == EncoderHead::labels;
  rows.add("head.dense", pooled ? "hidden" : "layer", "classifier_bias");
  rows.add("head.norm", pooled ? "hidden_norm" : "layer_norm", "norm_bias");
  if (head == EncoderHead::masked_words) {
    rows.add({rows.has("decoder_bias", true) ? "decoder.bias" : "", "bias", Use::token_biases});
    rows.add({"decoder.weight", "encoder.input.weight", Use::repeated});
  } else {
    rows.add({"classifier.weight", "output.weight"});
    rows.add({"classifier.bias", "output.bias"});
  }
  return rows.take();
}

Pooling pooling_in(const JsonPosition& config) {
  struct Row {
    std::string name;
    Pooling pooling;
  };
  const std::string name = config.text("classifier_pooling", "cls");
  for (const Row& row : {Row{"cls", Pooling::first_token}, Row{"mean", Pooling::mean}})
    if (row.name == name) return row.pooling;
  config.member("classifier_pooling")
      .refuse("is {}, which is not read; cls and mean are", in_quotes(name));
}

void read_labels(const JsonPosition& config, ForeignModel& model) {
  auto& ours = model.config.of<ClassifierConfig>();
  ours.pooling = pooling_in(config);
  ours.hidden = ours.depth;
  ours.hidden_activation = activation_in(config, "classifier_activation");
  ours.hidden_norm = true;
  ours.word_dropout = 0;
  ours.output_dropout = real_in(config, "classifier_dropout", 0, 0, max_dropout);
  read_answers(config, model);
}

// Reads the layer below the output of a type with one answer per token.
template <class Config>
void read_output_layer(const JsonPosition& config, ForeignModel& model) {
  auto& ours = model.config.of<Config>();
  if constexpr (requires { ours.class_token; }) ours.class_token = false;
  ours.output_layer = true;
  if (activation_in(config, "classifier_activation") != ours.activation)
    config.member("classifier_activation")
        .refuse("is not hidden_activation, which the layer below the output has here too");
}

}  // namespace

const EncoderArchitecture* find_modernbert(const std::string& type) {
  for (const EncoderArchitecture& row : modernbert_architectures())
    if (type_of(row.head) == type) return &row;
  return nullptr;
}

std::vector<ForeignClass> modernbert_classes() {
  const std::vector<std::string> layer = {"head.dense.weight", "head.norm.weight"};
  const std::vector<std::string> biases = {"head.dense.bias", "head.norm.bias", "decoder.weight"};
  std::vector<ForeignClass> classes;
  for (const EncoderArchitecture& row : modernbert_architectures()) {
    classes.push_back({.name = row.name, .kind = static_cast<int>(row.head)});
    if (row.head == EncoderHead::none) continue;
    ForeignClass& made = classes.back();
    made.required = layer;
    made.others = biases;
    const bool is_masked = row.head == EncoderHead::masked_words;
    for (const char* name : {"decoder.bias", "classifier.weight", "classifier.bias"})
      if (is_masked == std::string_view(name).starts_with("decoder")) made.required.push_back(name);
  }
  return classes;
}

// ModernBERT (Warner et al. 2024): rotary positions, gated layers, and windows in most layers.
ForeignModel read_modernbert(const JsonPosition& config) {
  ForeignModel model;
  check_values(config, modernbert_keys(), model.notes);
  const EncoderArchitecture& architecture = architecture_in(config, modernbert_architectures());
  model.architecture = architecture.name;
  model.config.type = type_of(architecture.head);
  SourceEncoderConfig& encoder = encoder_of(model.config, architecture.head);
  read_layers(config, encoder);
  model.prefix = "model.";
  model.tensors = modernbert_tensors(config, encoder.layers);
  const std::vector<TensorRow> head = head_tensors(config, architecture.head);
  model.tensors.insert(model.tensors.end(), head.begin(), head.end());
  model.head_tensors = head.size();
  model.layers = encoder.layers;
  model.heads = encoder.heads;
  model.tokens = size_in(config, "vocab_size", max_tokens);
  model.positions = encoder.maximum_source_length;
  if (architecture.head == EncoderHead::masked_words) model.output = "decoder.weight";
  model.tied = config.flag("tie_word_embeddings", true);
  if (architecture.head == EncoderHead::labels) read_labels(config, model);
  if (architecture.head == EncoderHead::masked_words)
    read_output_layer<MaskedLanguageModelConfig>(config, model);
  if (architecture.head == EncoderHead::span) {
    read_span(real_in(config, "classifier_dropout", 0, 0, max_dropout), model);
    read_output_layer<PassageReaderConfig>(config, model);
  }
  if (architecture.head == EncoderHead::token_labels) {
    read_token_labels(config, "classifier_dropout", 0, model);
    read_output_layer<TaggerConfig>(config, model);
  }
  return model;
}

}  // namespace attend::internal
