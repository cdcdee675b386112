#include <algorithm>

#include "attend/import/encoder-inl.h"
#include "attend/models/classifier.h"
#include "attend/models/embedder.h"
#include "attend/models/masked_language_model.h"
#include "attend/models/passage_reader.h"
#include "attend/models/tagger.h"

namespace attend::internal {
namespace {

void read_sizes(const JsonPosition& config, const EncoderType& type, SourceEncoderConfig& encoder) {
  read_layer_sizes(config, type.sizes, encoder);
  encoder.dropout = real_in(config, type.dropout, 0.1, 0, max_dropout);
  encoder.attention_dropout = real_in(config, type.attention_dropout, 0.1, 0, max_dropout);
  encoder.epsilon =
      type.epsilon == nullptr ? 1e-12 : real_in(config, type.epsilon, 1e-12, 1e-15, 1);
  encoder.self.bias = MechanismSettings::no_bias;
  encoder.positions = type.rotary ? Positions::rotary : Positions::learned;
  encoder.normalise_first = type.rotary;
  encoder.normalise_input = !type.rotary;
  if (type.rotary) check_rotated_heads(config, type.sizes, encoder);
}

void read_positions(const JsonPosition& config, const EncoderType& type, ForeignModel& model,
                    SourceEncoderConfig& encoder) {
  model.positions = size_in(config, "max_position_embeddings", 1 << 20);
  if (type.positions_after_padding) model.first_position = config.number("pad_token_id", 1) + 1;
  encoder.maximum_source_length = model.positions - model.first_position;
  if (encoder.maximum_source_length < 1)
    config.member("max_position_embeddings")
        .refuse("is {}, and the first position is {}", model.positions, model.first_position);
}

void read_two_labels(const JsonPosition& config, const EncoderArchitecture& architecture,
                     ForeignModel& model) {
  auto& ours = model.config.of<TaggerConfig>();
  ours.output_layer = true;
  ours.output_norm = false;
  if (!config.has("id2label")) model.labels = architecture.two_labels;
  if (model.labels.size() != 2)
    config.member("id2label")
        .refuse("has {} labels; {} has 2", model.labels.size(), architecture.name);
}

void read_head(const JsonPosition& config, const EncoderType& type,
               const EncoderArchitecture& architecture, ForeignModel& model) {
  const SourceEncoderConfig& encoder = encoder_of(model.config, architecture.head);
  if (architecture.head == EncoderHead::masked_words) {
    auto& ours = model.config.of<MaskedLanguageModelConfig>();
    ours.class_token = false;
    ours.output_layer = true;
    if (architecture.gelu_below_words && encoder.activation != HiddenActivation::gelu)
      config.member(type.sizes.activation)
          .refuse("is not gelu, which the layer below masked words of {} has", architecture.name);
  }
  if (architecture.head == EncoderHead::token_labels) {
    read_token_labels(config, type.label_dropout, encoder.dropout, model);
    if (!architecture.two_labels.empty()) read_two_labels(config, architecture, model);
  }
  if (architecture.head == EncoderHead::span)
    read_span(
        type.span_dropout == nullptr ? 0 : real_in(config, type.span_dropout, 0.1, 0, max_dropout),
        model);
  if (architecture.head != EncoderHead::labels) return;
  auto& ours = model.config.of<ClassifierConfig>();
  ours.pooling = Pooling::first_token;
  ours.hidden = encoder.depth;
  if (architecture.pooled) ours.hidden_activation = *architecture.pooled;
  ours.word_dropout = 0;
  ours.output_dropout = real_in(config, type.label_dropout, encoder.dropout, 0, max_dropout);
  read_answers(config, model);
}

}  // namespace

SourceEncoderConfig& encoder_of(ModelConfig& config, EncoderHead head) {
  if (head == EncoderHead::masked_words) return config.of<MaskedLanguageModelConfig>();
  if (head == EncoderHead::labels) return config.of<ClassifierConfig>();
  if (head == EncoderHead::token_labels) return config.of<TaggerConfig>();
  if (head == EncoderHead::span) return config.of<PassageReaderConfig>();
  return config.of<EmbedderConfig>();
}

SourceEncoderConfig* find_encoder(ModelConfig& config) {
  for (const EncoderHead head : {EncoderHead::none, EncoderHead::masked_words, EncoderHead::labels,
                                 EncoderHead::token_labels, EncoderHead::span})
    if (config.type == type_of(head)) return &encoder_of(config, head);
  return nullptr;
}

void limit_source(int64_t maximum, ModelConfig& config) {
  if (SourceEncoderConfig* encoder = find_encoder(config))
    encoder->maximum_source_length = std::min(encoder->maximum_source_length, maximum);
}

const char* type_of(EncoderHead head) {
  switch (head) {
    case EncoderHead::masked_words:
      return "encoder";
    case EncoderHead::labels:
      return "classifier";
    case EncoderHead::token_labels:
      return "tagger";
    case EncoderHead::span:
      return "reader";
    default:
      return "embedder";
  }
}

void read_layer_sizes(const JsonPosition& config, const LayerKeys& keys,
                      SourceEncoderConfig& encoder) {
  encoder.depth = size_in(config, keys.depth, 65536);
  encoder.layers = size_in(config, keys.layers, 256);
  encoder.heads = size_in(config, keys.heads, 1024);
  encoder.feed_forward = size_in(config, keys.feed_forward, 262144);
  if (encoder.depth % encoder.heads != 0)
    config.member(keys.heads)
        .refuse("is {}, which does not divide {}, {}", encoder.heads, keys.depth, encoder.depth);
  encoder.activation = activation_in(config, keys.activation);
}

void check_rotated_heads(const JsonPosition& config, const LayerKeys& keys,
                         const SourceEncoderConfig& encoder) {
  if (encoder.depth / encoder.heads % 2 != 0)
    config.member(keys.heads)
        .refuse("is {}, which gives heads an odd depth of {}, {}; rotation takes pairs",
                encoder.heads, keys.depth, encoder.depth);
}

void read_answers(const JsonPosition& config, ForeignModel& model) {
  model.labels = answers_in(config, model.notes);
  const bool is_number = model.labels.size() == 1;
  const std::string expected = is_number ? "regression" : "single_label_classification";
  const std::string problem = config.text("problem_type", expected);
  if (problem == "multi_label_classification") {
    model.target = TargetKind::labels;
    return;
  }
  if (problem != expected)
    config.member("problem_type")
        .refuse("is {}, and {} labels are read as {} only", in_quotes(problem), model.labels.size(),
                expected);
  if (!is_number) return;
  model.target = TargetKind::number;
  model.labels.clear();
}

void read_token_labels(const JsonPosition& config, const char* dropout_key, double otherwise,
                       ForeignModel& model) {
  auto& ours = model.config.of<TaggerConfig>();
  ours.recurrent_layers = 0;
  ours.class_token = false;
  ours.word_dropout = 0;
  ours.output_dropout = real_in(config, dropout_key, otherwise, 0, max_dropout);
  model.labels = words_in(config, model.notes);
}

void read_span(double dropout, ForeignModel& model) {
  auto& ours = model.config.of<PassageReaderConfig>();
  ours.word_dropout = 0;
  ours.output_dropout = dropout;
  model.target = TargetKind::span;
}

std::vector<ForeignClass> classes_of(const std::vector<EncoderArchitecture>& architectures) {
  std::vector<ForeignClass> classes;
  for (const EncoderArchitecture& row : architectures) {
    classes.push_back({.name = row.name, .kind = static_cast<int>(row.head)});
    for (const TensorRow& tensor : row.tensors) {
      const bool is_required = tensor.use != TensorUse::repeated && tensor.use != TensorUse::unused;
      auto& names = is_required ? classes.back().required : classes.back().others;
      names.push_back(tensor.theirs);
    }
  }
  return classes;
}

void add_rows(const std::vector<PartNames>& parts, const std::string& theirs,
              const std::string& ours, std::vector<TensorRow>& rows) {
  for (const PartNames& part : parts)
    for (const std::string kind : {".weight", ".bias"})
      rows.push_back({theirs + part.theirs + kind, ours + part.ours + kind, part.use});
}

std::vector<TensorRow> rows_of(const std::vector<PartNames>& parts) {
  std::vector<TensorRow> rows;
  add_rows(parts, "", "", rows);
  return rows;
}

std::vector<TensorRow> with_unused(std::vector<TensorRow> rows,
                                   const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    for (const std::string kind : {".weight", ".bias"})
      rows.push_back({part + kind, {}, TensorUse::unused});
  return rows;
}

std::vector<TensorRow> word_head(const std::string& layer, const std::string& norm,
                                 const std::string& output) {
  std::vector<TensorRow> rows = rows_of({{layer, "layer"}, {norm, "layer_norm"}});
  rows.push_back({output + ".bias", "bias", TensorUse::token_biases});
  rows.push_back({output + ".decoder.weight", "encoder.input.weight", TensorUse::repeated});
  rows.push_back({output + ".decoder.bias", "bias", TensorUse::repeated});
  return rows;
}

void insert_rows(ForeignModel& model, const std::vector<TensorRow>& rows) {
  model.tensors.insert(model.tensors.begin(), rows.begin(), rows.end());
}

ForeignModel read_encoder(const JsonPosition& config, const EncoderType& type) {
  ForeignModel model;
  check_values(config, type.keys, model.notes);
  const EncoderArchitecture& architecture = architecture_in(config, type.architectures);
  model.architecture = architecture.name;
  model.config.type = type_of(architecture.head);
  model.prefix = type.prefix;
  model.tensors = type.tensors;
  model.tensors.insert(model.tensors.end(), architecture.tensors.begin(),
                       architecture.tensors.end());
  model.head_tensors = architecture.tensors.size();
  for (const TensorRow& row : architecture.tensors)
    if (row.use == TensorUse::repeated && row.theirs.ends_with(".weight"))
      model.output = row.theirs;
  SourceEncoderConfig& encoder = encoder_of(model.config, architecture.head);
  read_sizes(config, type, encoder);
  read_positions(config, type, model, encoder);
  model.layers = encoder.layers;
  model.heads = encoder.heads;
  model.tokens = size_in(config, "vocab_size", max_tokens);
  model.tied = config.flag("tie_word_embeddings", true);
  read_head(config, type, architecture, model);
  if (type.read_more != nullptr) type.read_more(config, model);
  return model;
}

}  // namespace attend::internal
