#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/import/encoder-inl.h"
#include "attend/nn/rotation.h"

namespace attend::internal {

const char* const esm_frequencies = "encoder.layer.{}.attention.self.rotary_embeddings.inv_freq";

namespace {

using Use = TensorUse;

// Share of hidden tokens in the training of all released models, with token_dropout.
constexpr double hidden_in_training = 0.15 * 0.8;

constexpr const char *contact_weight = "contact_head.regression.weight",
                     *contact_bias = "contact_head.regression.bias";

std::vector<ConfigKey> esm_keys() {
  return {{"hidden_size"},
          {"num_hidden_layers"},
          {"num_attention_heads"},
          {"intermediate_size"},
          {"hidden_act", R"("gelu")"},
          {"hidden_dropout_prob"},
          {"attention_probs_dropout_prob"},
          {"layer_norm_eps"},
          {"vocab_size"},
          {"max_position_embeddings"},
          {"position_embedding_type", R"("rotary")",
           "only ESM-2's rotary positions are read, not the learned ones of ESM-1"},
          {"rope_theta"},
          {"emb_layer_norm_before"},
          {"token_dropout"},
          {"is_folding_model", "false", "ESMFold is not read"},
          {"esmfold_config", "{}", "ESMFold is not read"},
          // In transformers, these change nothing.
          {"classifier_dropout"},
          {"vocab_list"}};
}

// Theirs rotate the halves of heads together, ours neighbours.
std::vector<TensorRow> esm_tensors() {
  std::vector<TensorRow> rows = {
      {"embeddings.word_embeddings.weight", "encoder.input.weight", Use::token_rows},
      {"embeddings.position_embeddings.weight", {}, Use::unused},
      {"embeddings.position_ids", {}, Use::unused},
      {"rotary_embeddings.inv_freq", {}, Use::unused},
      // The name in files that transformers 5 writes.
      {"encoder.layer.*.attention.self.rotary_embeddings.inv_freq", {}, Use::unused},
      {esm_frequencies, {}, Use::unused}};
  add_rows({{"attention.LayerNorm", "self_norm"},
            {"attention.self.query", "self.query", Use::rotary_rows},
            {"attention.self.key", "self.key", Use::rotary_rows},
            {"attention.self.value", "self.value"},
            {"attention.output.dense", "self.output"},
            {"LayerNorm", "feed_forward_norm"},
            {"intermediate.dense", "feed_forward.hidden"},
            {"output.dense", "feed_forward.output"}},
           "encoder.layer.{}.", layer_prefix, rows);
  add_rows({{"encoder.emb_layer_norm_after", "encoder.layers.norm"}}, "", "", rows);
  return rows;
}

std::vector<EncoderArchitecture> esm_architectures() {
  const std::vector<std::string> pooler = {"pooler.dense"};
  return {
      {"EsmModel", EncoderHead::none, with_unused({}, pooler)},
      {.name = "EsmForMaskedLM",
       .head = EncoderHead::masked_words,
       .tensors = with_unused(word_head("lm_head.dense", "lm_head.layer_norm", "lm_head"), pooler),
       .gelu_below_words = true},
      {"EsmForSequenceClassification", EncoderHead::labels,
       with_unused(rows_of({{"classifier.dense", "hidden"}, {"classifier.out_proj", "output"}}),
                   pooler)},
      {"EsmForTokenClassification", EncoderHead::token_labels,
       with_unused(rows_of({{"classifier", "output"}}), pooler)}};
}

// Reads from the angles per position which rule gives them. Released files may hold them rounded to
// float16, as they were in training.
void read_frequencies(const TensorFile& theirs, SourceEncoderConfig& encoder) {
  constexpr std::string_view ending = "rotary_embeddings.inv_freq";
  std::string rule;
  for (const auto& [name, tensor] : theirs.tensors) {
    if (!name.ends_with(ending)) continue;
    std::string own;
    for (const char* each : {"none", "float16"}) {
      Rotation rotation = encoder.stack(encoder.layers, /*causal=*/false).self[0].rotation;
      rotation.scaling = parse_rotary_scaling(each);
      const at::Tensor wanted = rotary_frequencies(rotation, encoder.depth / encoder.heads);
      // Powers of float32 numbers have relative errors of a few 2^-24 times the logarithm.
      if (own.empty() && tensor.sizes() == wanted.sizes() &&
          at::allclose(tensor.to(at::kDouble), wanted, 4e-6, 0))
        own = each;
    }
    if (own.empty() || (!rule.empty() && own != rule))
      fail(
          "tensor {} holds other frequencies than powers of rope_theta, the same in all layers, as "
          "they are or in float16; such models are not read",
          in_quotes(name));
    rule = own;
  }
  if (!rule.empty()) encoder.rotary_scaling = rule;
}

void complete_esm(const TensorFile& theirs, ForeignModel& model) {
  SourceEncoderConfig& encoder = *find_encoder(model.config);
  read_frequencies(theirs, encoder);
  for (const std::string& name : {model.prefix + contact_weight, std::string(contact_weight)})
    if (theirs.tensors.contains(name) && !encoder.contact_head) add_contact_head(model);
}

void read_esm_more(const JsonPosition& config, ForeignModel& model) {
  SourceEncoderConfig& encoder = *find_encoder(model.config);
  encoder.rotary_bases = fmt::format("{}", real_in(config, "rope_theta", 10000, 1.001, 1e12));
  if (config.flag("token_dropout", false)) encoder.token_dropout = hidden_in_training;
  encoder.normalise_input = config.flag("emb_layer_norm_before", false);
  if (encoder.normalise_input)
    insert_rows(model, {{"embeddings.layer_norm.weight", "encoder.norm.weight"},
                        {"embeddings.layer_norm.bias", "encoder.norm.bias"}});
  model.older.special = TokenListFiles{}.tokens.special;
  model.older.lists_tokens = true;
  model.complete = complete_esm;
}

void write_esm_more(ModelConfig& ours, Json& config) {
  const SourceEncoderConfig& encoder = *find_encoder(ours);
  config["position_embedding_type"] = "rotary";
  config["rope_theta"] = encoder.stack(encoder.layers, /*causal=*/false).self[0].rotation.base;
  config["emb_layer_norm_before"] = encoder.normalise_input;
  config["token_dropout"] = encoder.token_dropout > 0;
  config["mask_token_id"] = nullptr;
}

}  // namespace

void add_contact_head(ForeignModel& model) {
  find_encoder(model.config)->contact_head = true;
  insert_rows(model, {{contact_weight, "encoder.contacts.weight"},
                      {contact_bias, "encoder.contacts.bias"}});
}

// ESM-2 (Lin et al. 2023), which reads proteins.
const EncoderType& esm_type() {
  static const EncoderType type = {.label_dropout = "hidden_dropout_prob",
                                   .rotary = true,
                                   .prefix = "esm.",
                                   .keys = esm_keys(),
                                   .tensors = esm_tensors(),
                                   .architectures = esm_architectures(),
                                   .read_more = read_esm_more,
                                   .write_more = write_esm_more};
  return type;
}

ForeignModel read_esm(const JsonPosition& config) { return read_encoder(config, esm_type()); }

std::vector<ForeignClass> esm_classes() { return classes_of(esm_type().architectures); }

}  // namespace attend::internal
