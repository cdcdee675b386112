#include <algorithm>

#include "attend/base/error.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/export-inl.h"
#include "attend/models/classifier.h"
#include "attend/models/passage_reader.h"
#include "attend/models/tagger.h"

namespace attend::internal {
namespace {

// Keys of layers that may have biases, and parts of the names of these in our parameters.
struct BiasKey {
  const char* key;
  std::vector<std::string> parts;
};

const std::vector<BiasKey>& bias_keys() {
  static const std::vector<BiasKey> table = {{"norm_bias", {"norm.bias"}},
                                             {"attention_bias", {"_self."}},
                                             {"mlp_bias", {"_feed_forward."}},
                                             {"classifier_bias", {"hidden.bias", "layer.bias"}}};
  return table;
}

// Whether a bias of these layers is not zero.
bool has_biases(const PairModel& model, const BiasKey& row) {
  for (const auto& parameter : model.network->named_parameters()) {
    const std::string& name = parameter.key();
    const auto is_in_name = [&](const std::string& part) { return name.find(part) != name.npos; };
    if (name.ends_with(".bias") && std::any_of(row.parts.begin(), row.parts.end(), is_in_name) &&
        parameter.value().count_nonzero().item<int64_t>() > 0)
      return true;
  }
  return false;
}

// Adds the layers with a window (layer_types), its width on both sides together (local_attention),
// and the base of the rotary positions of each kind (rope_parameters).
void add_turns(const SourceEncoderConfig& encoder, Json& config) {
  const TransformerStackConfig stack = encoder.stack(encoder.layers, /*causal=*/false);
  Json types = Json::array(), rotations = Json::object();
  for (size_t i = 0; i < static_cast<size_t>(encoder.layers); ++i) {
    const auto& turns = stack.self_in_turn;
    const HeadGroup& group = turns.empty() ? stack.self[0] : turns[i % turns.size()][0];
    constexpr std::string_view window = "window:";
    const bool is_local = group.choices.scope.starts_with(window);
    types.push_back(is_local ? "sliding_attention" : "full_attention");
    if (is_local)
      config["local_attention"] = 2 * std::stoll(group.choices.scope.substr(window.size()));
    rotations[types.back()] = {{"rope_type", "default"}, {"rope_theta", group.rotation.base}};
    if (group.rotation != Rotation{.base = group.rotation.base})
      fail(
          "model.rotary_scaling, model.rotary_share or model.rotary_pairs differ from "
          "ModernBERT's; "
          "export a model without them");
  }
  config["layer_types"] = types;
  config["rope_parameters"] = rotations;
}

void add_head(const PairModel& model, EncoderHead head, Json& config) {
  ModelConfig ours = model.config;
  if (head == EncoderHead::span)
    config["classifier_dropout"] = ours.of<PassageReaderConfig>().output_dropout;
  if (head != EncoderHead::none && head != EncoderHead::labels)
    config["classifier_activation"] = config["hidden_activation"];
  if (head == EncoderHead::token_labels) {
    config["classifier_dropout"] = ours.of<TaggerConfig>().output_dropout;
    add_labels(model, config);
  }
  if (head != EncoderHead::labels) return;
  const auto& own = ours.of<ClassifierConfig>();
  config["classifier_pooling"] = own.pooling == Pooling::mean ? "mean" : "cls";
  config["classifier_activation"] = activation_name(own.hidden_activation);
  config["classifier_dropout"] = own.output_dropout;
  add_labels(model, config);
}

}  // namespace

ExportedFolder exported_modernbert(const PairModel& model, const std::string& folder) {
  const ExportedTokens tokens = exported_tokens(model, folder);
  ModelConfig whole = model.config;
  const EncoderArchitecture* architecture = find_modernbert(whole.type);
  if (architecture == nullptr)
    fail("{}: model.type is {}, and its layers are ModernBERT's, which has no such head", folder,
         whole.type);
  const EncoderHead head = architecture->head;
  const SourceEncoderConfig& encoder = encoder_of(whole, head);
  ExportedFolder made{.architecture = architecture->name};
  made.config = {{"architectures", Json::array({made.architecture})},
                 {"model_type", "modernbert"},
                 {"hidden_size", encoder.depth},
                 {"num_hidden_layers", encoder.layers},
                 {"num_attention_heads", encoder.heads},
                 {"intermediate_size", encoder.feed_forward},
                 {"hidden_activation", activation_name(encoder.activation)},
                 {"norm_eps", encoder.epsilon},
                 {"mlp_dropout", encoder.dropout},
                 {"attention_dropout", encoder.attention_dropout},
                 {"vocab_size", std::ssize(tokens.vectors)},
                 {"pad_token_id", 0},
                 {"max_position_embeddings", encoder.maximum_source_length}};
  for (const BiasKey& row : bias_keys()) made.config[row.key] = has_biases(model, row);
  add_turns(encoder, made.config);
  add_head(model, head, made.config);
  made.again = read_again(made.config, read_modernbert);
  if (head == EncoderHead::none) made.again.prefix = "";
  add_exported(model, tokens, made);
  add_tokenizer_config(model, tokens, made);
  return made;
}

}  // namespace attend::internal
