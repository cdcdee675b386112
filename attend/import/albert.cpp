#include <set>

#include "attend/import/encoder-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

constexpr const char *groups_key = "num_hidden_groups", *inner_key = "inner_group_num";

std::vector<ConfigKey> albert_keys() {
  return {{"hidden_size"},
          {"embedding_size"},
          {"num_hidden_layers"},
          {groups_key},
          {inner_key},
          {"num_attention_heads"},
          {"intermediate_size"},
          {"hidden_act"},
          {"hidden_dropout_prob"},
          {"attention_probs_dropout_prob"},
          {"classifier_dropout_prob"},
          {"layer_norm_eps"},
          {"vocab_size"},
          {"max_position_embeddings"},
          {"type_vocab_size"},
          {"position_embedding_type", R"("absolute")"},
          // Keys of files of 2019, which nothing reads.
          {"down_scale_factor"},
          {"gap_size"},
          {"net_structure_type"},
          {"num_memory_blocks"}};
}

std::vector<TensorRow> albert_tensors() {
  return {
      {"embeddings.word_embeddings.weight", "encoder.input.weight", Use::token_rows},
      {"embeddings.position_embeddings.weight", "encoder.positions.table", Use::position_rows},
      {"embeddings.token_type_embeddings.weight", "encoder.positions.table", Use::first_row_added},
      {"embeddings.LayerNorm.weight", "encoder.norm.weight"},
      {"embeddings.LayerNorm.bias", "encoder.norm.bias"},
      {"embeddings.position_ids", {}, Use::unused},
      {"encoder.embedding_hidden_mapping_in.weight", "encoder.projection.weight"},
      {"encoder.embedding_hidden_mapping_in.bias", "encoder.projection.bias"}};
}

// AlbertForPreTraining also judges whether two texts are in order.
EncoderArchitecture albert_masked_words(const std::string& name) {
  return {name, EncoderHead::masked_words,
          with_unused(word_head("predictions.dense", "predictions.LayerNorm", "predictions"),
                      {"pooler", "sop_classifier.classifier"})};
}

std::vector<EncoderArchitecture> albert_architectures() {
  return {{"AlbertModel", EncoderHead::none, with_unused({}, {"pooler"})},
          albert_masked_words("AlbertForMaskedLM"),
          albert_masked_words("AlbertForPreTraining"),
          {"AlbertForSequenceClassification", EncoderHead::labels,
           rows_of({{"pooler", "hidden"}, {"classifier", "output"}})},
          {"AlbertForTokenClassification", EncoderHead::token_labels,
           with_unused(rows_of({{"classifier", "output"}}), {"pooler"})}};
}

// Number of their groups and of the layers of a group.
struct LayerGroups {
  int64_t groups = 1, inner = 1;
};

// The group that pass `pass` of `passes` over the layers of a group applies, rounded as in
// transformers.
int64_t group_of(int64_t pass, int64_t passes, const LayerGroups& shared) {
  return static_cast<int64_t>(static_cast<double>(pass) /
                              (static_cast<double>(passes) / static_cast<double>(shared.groups)));
}

// Number, from 0, of the first layer with the parameters of each layer.
std::vector<int64_t> first_layers(int64_t passes, const LayerGroups& shared) {
  std::vector<int64_t> first, firsts(static_cast<size_t>(shared.groups), -1);
  for (int64_t pass = 0; pass < passes; ++pass) {
    int64_t& begin = firsts[static_cast<size_t>(group_of(pass, passes, shared))];
    if (begin < 0) begin = pass * shared.inner;
    for (int64_t layer = 0; layer < shared.inner; ++layer) first.push_back(begin + layer);
  }
  return first;
}

std::string listed(const std::vector<int64_t>& owners) {
  std::string text;
  for (const int64_t owner : owners)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", owner + 1);
  return text;
}

// Rows of the layers that have parameters of their own. `first`: see first_layers().
std::vector<TensorRow> layer_rows(const std::vector<int64_t>& first, const LayerGroups& shared) {
  std::vector<TensorRow> rows;
  const int64_t layers = std::ssize(first), passes = layers / shared.inner;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (first[static_cast<size_t>(layer)] != layer) continue;
    const int64_t group = group_of(layer / shared.inner, passes, shared);
    add_rows({{"attention.query", "self.query"},
              {"attention.key", "self.key"},
              {"attention.value", "self.value"},
              {"attention.dense", "self.output"},
              {"attention.LayerNorm", "self_norm"},
              {"ffn", "feed_forward.hidden"},
              {"ffn_output", "feed_forward.output"},
              {"full_layer_layer_norm", "feed_forward_norm"}},
             fmt::format("encoder.albert_layer_groups.{}.albert_layers.{}.", group,
                         layer % shared.inner),
             fmt::format(layer_prefix, layer), rows);
  }
  return rows;
}

void read_albert_more(const JsonPosition& config, ForeignModel& model) {
  SourceEncoderConfig& encoder = *find_encoder(model.config);
  encoder.embedding_depth = size_in(config, albert_type().embedding, 65536);
  const auto count = [&](const char* key) {
    return config.has(key) ? size_in(config, key, 256) : int64_t{1};
  };
  const LayerGroups shared{count(groups_key), count(inner_key)};
  const int64_t passes = encoder.layers;
  if (shared.groups > passes)
    config.member(groups_key).refuse("is {}, and num_hidden_layers {}", shared.groups, passes);
  if (passes * shared.inner > 256)
    config.member(inner_key).refuse("is {}, which makes more than 256 layers", shared.inner);
  const std::vector<int64_t> first = first_layers(passes, shared);
  encoder.layers = model.layers = std::ssize(first);
  encoder.shared_layers = listed(first);
  insert_rows(model, layer_rows(first, shared));
  model.older = {.special = {.unknown = "<unk>",
                             .begin = "[CLS]",
                             .end = "[SEP]",
                             .padding = "<pad>",
                             .mask = "[MASK]"},
                 .pieces = "spiece.model",
                 .changes_texts = true};
}

// Writes the sizes that give `shared_layers`, with the fewest layers per group. Error if none do.
void write_groups(ModelConfig& ours, Json& config) {
  const SourceEncoderConfig& encoder = *find_encoder(ours);
  const std::vector<int64_t> owners = encoder.layer_owners();
  const int64_t owned = std::ssize(std::set<int64_t>(owners.begin(), owners.end()));
  for (int64_t inner = 1; inner <= owned; ++inner) {
    if (owned % inner != 0 || encoder.layers % inner != 0) continue;
    const LayerGroups shared{owned / inner, inner};
    const int64_t passes = encoder.layers / inner;
    if (first_layers(passes, shared) != owners) continue;
    config[albert_type().sizes.layers] = passes;
    config[groups_key] = shared.groups;
    config[inner_key] = inner;
    return;
  }
  fail(
      "model.shared_layers is {}, and ALBERT has groups of equal size; such models are not "
      "exported",
      encoder.shared_layers);
}

}  // namespace

// ALBERT (Lan et al. 2020): groups of layers with the same parameters, and smaller vectors of
// tokens.
const EncoderType& albert_type() {
  static const EncoderType type = {.label_dropout = "classifier_dropout_prob",
                                   .embedding = "embedding_size",
                                   .shares_layers = true,
                                   .prefix = "albert.",
                                   .keys = albert_keys(),
                                   .tensors = albert_tensors(),
                                   .architectures = albert_architectures(),
                                   .read_more = read_albert_more,
                                   .write_more = write_groups};
  return type;
}

ForeignModel read_albert(const JsonPosition& config) { return read_encoder(config, albert_type()); }

std::vector<ForeignClass> albert_classes() { return classes_of(albert_type().architectures); }

}  // namespace attend::internal
