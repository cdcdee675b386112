#include <optional>

#include "attend/base/error.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/export-inl.h"
#include "attend/import/text_pairs-inl.h"
#include "attend/models/classifier.h"
#include "attend/models/embedder.h"
#include "attend/models/passage_reader.h"
#include "attend/models/tagger.h"

namespace attend::internal {
namespace {

// A class that an encoder can be exported to.
struct ExportTarget {
  const char* model_type;
  const EncoderType& type;
  const EncoderArchitecture& architecture;
};

Rotation rotation_of(const SourceEncoderConfig& encoder) {
  return encoder.stack(encoder.layers, /*causal=*/false).self[0].rotation;
}

// Adds the tensors that replace settings of a type with rotary positions: the contact head, and
// frequencies in float16.
void add_rotary_tensors(const SourceEncoderConfig& ours, ExportedFolder& made) {
  if (ours.contact_head) add_contact_head(made.again);
  const Rotation rotation = rotation_of(ours);
  if (rotation.scaling.rule != RotaryRule::float16) return;
  find_encoder(made.again.config)->rotary_scaling = ours.rotary_scaling;
  const at::Tensor frequencies =
      rotary_frequencies(rotation, ours.depth / ours.heads).to(at::kFloat);
  for (int64_t layer = 0; layer < ours.layers; ++layer)
    made.file.tensors[made.again.prefix + fmt::format(fmt::runtime(esm_frequencies), layer)] =
        frequencies;
}

bool has_side_vectors(const PairModel& model) {
  return model.network->named_parameters().contains(side_vectors_name);
}

// Returns the config.json that read_encoder reads.
Json config_of(const PairModel& model, const ExportTarget& target, int64_t tokens) {
  ModelConfig ours = model.config;
  const EncoderHead head = target.architecture.head;
  const EncoderType& type = target.type;
  const SourceEncoderConfig& encoder = encoder_of(ours, head);
  Json config = {{"architectures", Json::array({target.architecture.name})},
                 {"model_type", target.model_type},
                 {type.sizes.depth, encoder.depth},
                 {type.sizes.layers, encoder.layers},
                 {type.sizes.heads, encoder.heads},
                 {type.sizes.feed_forward, encoder.feed_forward},
                 {type.sizes.activation, activation_name(encoder.activation)},
                 {type.dropout, encoder.dropout},
                 {type.attention_dropout, encoder.attention_dropout},
                 {"vocab_size", tokens},
                 {"pad_token_id", 0},
                 {"max_position_embeddings", encoder.maximum_source_length}};
  if (type.epsilon != nullptr) config[type.epsilon] = encoder.epsilon;
  if (type.write_more != nullptr) type.write_more(ours, config);
  if (type.embedding != nullptr) config[type.embedding] = encoder.input_depth();
  for (const TensorRow& row : type.tensors)
    if (row.use == TensorUse::first_row_added)
      config["type_vocab_size"] = has_side_vectors(model) ? 2 : 1;
  if (head == EncoderHead::labels || head == EncoderHead::token_labels) {
    // MPNet has one dropout for all.
    if (type.label_dropout != std::string_view(type.dropout))
      config[type.label_dropout] = head == EncoderHead::labels
                                       ? ours.of<ClassifierConfig>().output_dropout
                                       : ours.of<TaggerConfig>().output_dropout;
    add_labels(model, config);
  }
  return config;
}

// Whether the type has the parts of our encoder that not every type has.
bool has_parts(const EncoderType& type, const SourceEncoderConfig& encoder) {
  const bool is_rotary = encoder.positions == Positions::rotary;
  const bool is_relative = encoder.distances != DistanceSource::own;
  return type.rotary == is_rotary && type.relative == is_relative &&
         type.shares_bias == encoder.shared_bias &&
         type.shares_layers != encoder.shared_layers.empty() &&
         (type.embedding != nullptr || encoder.embedding_depth == 0);
}

// Whether the class has the layer below its labels that our model has.
bool has_head(const EncoderArchitecture& row, ModelConfig config) {
  if (type_of(row.head) != config.type) return false;
  if (row.head == EncoderHead::labels)
    return !row.pooled || *row.pooled == config.of<ClassifierConfig>().hidden_activation;
  return row.head != EncoderHead::token_labels ||
         row.two_labels.empty() != config.of<TaggerConfig>().output_layer;
}

std::optional<ExportTarget> find_target(ModelConfig config) {
  const std::pair<const char*, const EncoderType&> types[] = {
      {"bert", bert_type()},         {"distilbert", distilbert_type()}, {"esm", esm_type()},
      {"electra", electra_type()},   {"albert", albert_type()},         {"mpnet", mpnet_type()},
      {"deberta-v2", deberta_type()}};
  const SourceEncoderConfig* encoder = find_encoder(config);
  for (const auto& [name, type] : types)
    for (const EncoderArchitecture& row : type.architectures)
      if (encoder != nullptr && has_parts(type, *encoder) && has_head(row, config))
        return ExportTarget{name, type, row};
  return std::nullopt;
}

[[noreturn]] void refuse_side_vectors(std::string_view reason) {
  fail("model.side_vectors is true, and {}; train with false to export", reason);
}

// Exports the vectors of the two texts as token types 0 and 1.
void export_side_vectors(const PairModel& model, ExportedFolder& made) {
  if (!made.config.contains("type_vocab_size"))
    refuse_side_vectors(made.architecture + " has no types of tokens");
  if (model.codecs.source.tokenizer->pair_types() != PairTypes::by_text)
    refuse_side_vectors("the tokenizer does not give the second text the type 1");
  keep_token_types(made.again);
}

}  // namespace

ExportedFolder exported_encoder(const PairModel& model, const std::string& folder) {
  ModelConfig ours = model.config;
  const SourceEncoderConfig* encoder = find_encoder(ours);
  if (encoder != nullptr && encoder->norm == NormKind::rms)
    return exported_t5_encoder(model, folder);
  if (encoder != nullptr && encoder->gated) {
    if (has_side_vectors(model)) refuse_side_vectors("ModernBERT has no types of tokens");
    return exported_modernbert(model, folder);
  }
  const ExportedTokens tokens = exported_tokens(model, folder);
  const std::optional<ExportTarget> target = find_target(model.config);
  if (!target)
    fail(
        "{}: no class of transformers has these layers (model.positions, distances, shared_bias, "
        "shared_layers, embedding_depth) and this output; such models are not exported",
        folder);
  ExportedFolder made{.architecture = target->architecture.name,
                      .config = config_of(model, *target, std::ssize(tokens.vectors))};
  made.again = read_again(
      made.config, [&](const JsonPosition& config) { return read_encoder(config, target->type); });
  // The length is in tokenizer_config.json, too.
  limit_source(encoder->maximum_source_length, made.again.config);
  if (has_side_vectors(model)) export_side_vectors(model, made);
  if (target->architecture.head == EncoderHead::none) made.again.prefix = "";
  // model.bias may be empty or auto.
  SourceEncoderConfig& theirs = *find_encoder(made.again.config);
  const MechanismSettings& own = encoder->self;
  if (theirs.self.choices().bias == own.choices().bias) theirs.self.bias = own.bias;
  if (target->type.rotary) add_rotary_tensors(*encoder, made);
  add_exported(model, tokens, made);
  add_tokenizer_config(model, tokens, made);
  const int64_t first = made.again.first_position;
  if (first > 0 && made.config["pad_token_id"] != first - 1)
    fail("{}: its tokenizer pads with token {}, and {} takes {}; such models are not exported",
         folder, made.config["pad_token_id"].get<int64_t>(), made.architecture, first - 1);
  return made;
}

}  // namespace attend::internal
