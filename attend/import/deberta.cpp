#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "attend/base/trimmed_parts.h"
#include "attend/import/encoder-inl.h"
#include "attend/models/classifier.h"
#include "attend/nn/choice_parameters.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

constexpr const char *word_layer = "cls.predictions.transform.dense.weight",
                     *newer_word_layer = "lm_predictions.lm_head.dense.weight";

// Tensors of released files that no class reads.
std::vector<TensorRow> with_unused_head(std::vector<TensorRow> rows) {
  return with_unused(std::move(rows), {"mask_predictions.dense", "mask_predictions.LayerNorm",
                                       "mask_predictions.classifier"});
}

// The same head with the names of files in which the key legacy is false.
std::vector<TensorRow> newer_word_tensors() {
  return with_unused_head(word_head("lm_predictions.lm_head.dense",
                                    "lm_predictions.lm_head.LayerNorm", "lm_predictions.lm_head"));
}

std::vector<EncoderArchitecture> deberta_architectures() {
  return {
      {"DebertaV2Model", EncoderHead::none, with_unused_head({})},
      {"DebertaV2ForMaskedLM", EncoderHead::masked_words,
       with_unused_head(word_head("cls.predictions.transform.dense",
                                  "cls.predictions.transform.LayerNorm", "cls.predictions"))},
      {.name = "DebertaV2ForSequenceClassification",
       .head = EncoderHead::labels,
       .tensors = with_unused_head(rows_of({{"pooler.dense", "hidden"}, {"classifier", "output"}})),
       .pooled = std::nullopt},
      {"DebertaV2ForTokenClassification", EncoderHead::token_labels,
       with_unused_head(rows_of({{"classifier", "output"}}))}};
}

std::vector<ConfigKey> deberta_keys() {
  return {{"hidden_size"},
          {"num_hidden_layers"},
          {"num_attention_heads"},
          {"intermediate_size"},
          {"hidden_act"},
          {"hidden_dropout_prob"},
          {"attention_probs_dropout_prob"},
          {"layer_norm_eps"},
          {"vocab_size"},
          {"max_position_embeddings"},
          {"type_vocab_size", "0", "types of tokens are not read"},
          {"relative_attention"},
          {"max_relative_positions"},
          {"position_buckets"},
          {"norm_rel_ebd"},
          {"share_att_key"},
          {"pos_att_type"},
          {"position_biased_input"},
          {"conv_kernel_size"},
          {"conv_act"},
          {"conv_groups", "1"},
          {"embedding_size"},
          {"attention_head_size"},
          {"pooler_hidden_size"},
          {"pooler_hidden_act"},
          {"legacy"},
          // Dropout, which answers lack.
          {"pooler_dropout"},
          {"cls_dropout"}};
}

std::vector<TensorRow> deberta_tensors() {
  std::vector<TensorRow> rows = {
      {"embeddings.word_embeddings.weight", "encoder.input.weight", Use::token_rows},
      {"embeddings.LayerNorm.weight", "encoder.norm.weight"},
      {"embeddings.LayerNorm.bias", "encoder.norm.bias"},
      {"embeddings.position_ids", {}, Use::unused}};
  add_bert_layers("_proj", rows);
  return rows;
}

// The parts of a text such as "c2p|p2c", in lower case, or of a list.
std::set<std::string> term_names_in(const JsonPosition& config, const char* key) {
  std::set<std::string> names;
  if (!config.has(key)) return names;
  const JsonPosition place = config.member(key);
  std::string all;
  if (place.value().is_string())
    all = place.text();
  else
    for (const JsonPosition& name : place.list()) all += name.text() + "|";
  std::transform(all.begin(), all.end(), all.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::string& name : trimmed_parts(all, '|'))
    if (!name.empty()) names.insert(std::move(name));
  return names;
}

// Returns `otherwise` if the key is missing or its number is below 1.
int64_t positive_or(const JsonPosition& config, const char* key, int64_t otherwise,
                    int64_t most = largest_bias_number) {
  if (!config.has(key)) return otherwise;
  const Json& number = config.member(key).value();
  const bool is_off = number.is_number_integer() && number.get<double>() < 1;
  return is_off ? otherwise : size_in(config, key, most);
}

// The two relative terms of the scores.
void read_terms(const JsonPosition& config, SourceEncoderConfig& encoder) {
  const std::set<std::string> types = term_names_in(config, "pos_att_type");
  const bool both = types.contains("c2p") && types.contains("p2c");
  if (!both && (types.contains("c2p") || types.contains("p2c")))
    config.member("pos_att_type").refuse("names one of c2p and p2c; both and none are read");
  // Scores are divided by their number of terms even without relative attention.
  if (both) encoder.self.score = "disentangled_dot";
  if (!config.flag("relative_attention", false)) return;
  if (!both) config.refuse("has relative_attention, and pos_att_type lacks c2p and p2c");
  const char* const reach_key = "max_relative_positions";
  const int64_t reach = positive_or(
      config, reach_key, size_in(config, "max_position_embeddings", largest_bias_number));
  const int64_t buckets = positive_or(config, "position_buckets", 0);
  // The first half of the buckets holds one distance each.
  if (buckets == 1 || (buckets > 0 && reach <= buckets / 2 + 1))
    config.member("position_buckets")
        .refuse("is {}, with distances up to {}; take more buckets than 1, and distances above {}",
                buckets, reach, buckets / 2 + 1);
  const std::string numbers =
      buckets > 0 ? fmt::format("{},{}", buckets, reach) : fmt::format("{}", reach);
  encoder.self.mechanism = "disentangled";
  encoder.self.score.clear();
  encoder.self.bias =
      fmt::format("content_to_position:{} + position_to_content:{}", numbers, numbers);
  encoder.distances =
      config.flag("share_att_key", false) ? DistanceSource::shared : DistanceSource::mapped;
}

void read_distances(const JsonPosition& config, SourceEncoderConfig& encoder, ForeignModel& model) {
  const std::string ours = "encoder.layers.";
  const bool normalised = term_names_in(config, "norm_rel_ebd").contains("layer_norm");
  encoder.normalise_distances = normalised && encoder.distances != DistanceSource::own;
  if (encoder.distances != DistanceSource::own)
    insert_rows(model, {{"encoder.rel_embeddings.weight", ours + "distances.table"}});
  if (encoder.normalise_distances)
    insert_rows(model, rows_of({{"encoder.LayerNorm", ours + "distances.norm"}}));
  if (encoder.distances != DistanceSource::mapped) return;
  const std::string layer = "encoder.layer.{}.attention.self.";
  insert_rows(model, rows_of({{layer + "pos_key_proj", ours + "layer{}_self.distance_key"}}));
  insert_rows(model, rows_of({{layer + "pos_query_proj", ours + "layer{}_self.distance_query"}}));
}

void read_convolution(const JsonPosition& config, SourceEncoderConfig& encoder,
                      ForeignModel& model) {
  constexpr const char* key = "conv_kernel_size";
  encoder.convolution = positive_or(config, key, 0, 255);
  if (encoder.convolution == 0) return;
  if (encoder.convolution % 2 == 0)
    config.member(key).refuse("is {}; odd widths are read", encoder.convolution);
  encoder.convolution_activation = activation_in(config, "conv_act", "tanh");
  const std::string ours = "encoder.layers.convolution.";
  insert_rows(model, {{"encoder.conv.conv.weight", ours + "map.weight", Use::convolution},
                      {"encoder.conv.conv.bias", ours + "map.bias"}});
  insert_rows(model, rows_of({{"encoder.conv.LayerNorm", ours + "norm"}}));
}

// Without vectors of positions, their number is not limited.
void read_absolute_positions(const JsonPosition& config, SourceEncoderConfig& encoder,
                             ForeignModel& model) {
  constexpr const char* theirs = "embeddings.position_embeddings.weight";
  if (config.flag("position_biased_input", true))
    return insert_rows(model, {{theirs, "encoder.positions.table", Use::position_rows}});
  insert_rows(model, {{theirs, {}, Use::unused}});
  encoder.positions = Positions::none;
  encoder.maximum_source_length = 1 << 20;
}

void take_newer_words(ForeignModel& model) {
  model.tensors.resize(model.tensors.size() - model.head_tensors);
  const std::vector<TensorRow> head = newer_word_tensors();
  model.tensors.insert(model.tensors.end(), head.begin(), head.end());
  model.head_tensors = head.size();
  model.output.clear();
}

// Released files have the newer names without the key, and transformers then has no weights.
void complete_deberta(const TensorFile& theirs, ForeignModel& model) {
  if (model.output.empty() || theirs.tensors.contains(word_layer) ||
      !theirs.tensors.contains(newer_word_layer))
    return;
  take_newer_words(model);
  model.notes.push_back(
      fmt::format("the head of masked words is {}; transformers reads it if the key legacy of "
                  "config.json is false",
                  newer_word_layer));
}

void check_equal_sizes(const JsonPosition& config, const SourceEncoderConfig& encoder) {
  const auto check = [&](const char* key, int64_t only) {
    if (config.number(key, only) != only)
      config.member(key).refuse("is {}; {} is read", config.number(key, 0), only);
  };
  check("embedding_size", encoder.depth);
  check("pooler_hidden_size", encoder.depth);
  check("attention_head_size", encoder.depth / encoder.heads);
}

void read_deberta_more(const JsonPosition& config, ForeignModel& model) {
  SourceEncoderConfig& encoder = *find_encoder(model.config);
  check_equal_sizes(config, encoder);
  encoder.epsilon = real_in(config, "layer_norm_eps", 1e-7, 1e-15, 1);
  read_terms(config, encoder);
  read_distances(config, encoder, model);
  read_convolution(config, encoder, model);
  read_absolute_positions(config, encoder, model);
  if (model.config.type == type_of(EncoderHead::labels))
    model.config.of<ClassifierConfig>().hidden_activation =
        activation_in(config, "pooler_hidden_act");
  if (model.config.type == type_of(EncoderHead::masked_words)) {
    if (!config.flag("legacy", true)) take_newer_words(model);
    model.complete = complete_deberta;
  }
  model.older = {.special = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"},
                 .pieces = "spm.model",
                 .pieces_like_bert = true};
}

void write_deberta_more(ModelConfig& ours, Json& config) {
  const SourceEncoderConfig& encoder = *find_encoder(ours);
  config["type_vocab_size"] = 0;
  config["relative_attention"] = true;
  config["pos_att_type"] = {"p2c", "c2p"};
  config["share_att_key"] = encoder.distances == DistanceSource::shared;
  config["norm_rel_ebd"] = encoder.normalise_distances ? "layer_norm" : "none";
  config["position_biased_input"] = encoder.positions == Positions::learned;
  for (const BiasChoice& bias : parse_biases(encoder.self.choices().bias)) {
    if (!bias.row->compares()) continue;
    const int64_t distance = largest_distance(bias), reach = bias.numbers[0];
    config["position_buckets"] = distance > 0 ? reach : -1;
    config["max_relative_positions"] = distance > 0 ? distance : reach;
  }
  if (encoder.positions != Positions::learned)
    config["max_position_embeddings"] = config["max_relative_positions"];
  if (encoder.convolution > 0) {
    config["conv_kernel_size"] = encoder.convolution;
    config["conv_act"] = activation_name(encoder.convolution_activation);
  }
  if (ours.type == type_of(EncoderHead::labels))
    config["pooler_hidden_act"] = activation_name(ours.of<ClassifierConfig>().hidden_activation);
}

}  // namespace

// DeBERTa of versions 2 and 3 (He et al. 2021; He et al. 2023).
const EncoderType& deberta_type() {
  static const EncoderType type = {.label_dropout = "cls_dropout",
                                   .relative = true,
                                   .prefix = "deberta.",
                                   .keys = deberta_keys(),
                                   .tensors = deberta_tensors(),
                                   .architectures = deberta_architectures(),
                                   .read_more = read_deberta_more,
                                   .write_more = write_deberta_more};
  return type;
}

ForeignModel read_deberta(const JsonPosition& config) {
  return read_encoder(config, deberta_type());
}

std::vector<ForeignClass> deberta_classes() {
  std::vector<EncoderArchitecture> all = deberta_architectures();
  all.push_back({"DebertaV2ForMaskedLM", EncoderHead::masked_words, newer_word_tensors()});
  return classes_of(all);
}

}  // namespace attend::internal
