#include <algorithm>
#include <string>
#include <string_view>

#include "attend/import/export-inl.h"
#include "attend/import/sentence_encoder-inl.h"
#include "attend/import/text_pairs-inl.h"
#include "attend/models/embedder.h"

namespace attend::internal {
namespace {

// Returns flags, which all versions read, or a list if its order differs from the flags' order.
Json pooling_of(const EmbedderConfig& config) {
  Json flags = {{"word_embedding_dimension", config.depth}};
  flags["include_prompt"] = config.pool_prompt;
  Json list = flags;
  std::vector<TextVector> in_order;
  const std::vector<TextVector> all = config.text_vectors();
  for (const PoolingName& row : pooling_names()) {
    flags[row.flag] = std::find(all.begin(), all.end(), row.vector) != all.end();
    if (flags[row.flag] == true) in_order.push_back(row.vector);
  }
  if (in_order == all) return flags;
  for (const TextVector each : all)
    for (const PoolingName& row : pooling_names())
      if (row.vector == each) list["pooling_mode"].push_back(row.name);
  return list;
}

void add_tensors(const PairModel& model, const std::vector<TensorRow>& rows, const char* prefix,
                 TensorFile& file) {
  const auto parameters = model.network->named_parameters();
  for (const TensorRow& row : rows)
    file.tensors[row.theirs.substr(std::string_view(prefix).size())] =
        parameters[row.ours].detach();
}

// The layer after the pooling, in a folder of its own.
void add_dense(const PairModel& model, const EmbedderConfig& config, const std::string& folder,
               ExportedFolder& made) {
  const bool is_tanh = config.text_activation == TextActivation::tanh;
  made.documents[folder + "/config.json"] = {
      {"in_features", config.pooled_depth()},
      {"out_features", config.text_depth},
      {"bias", true},
      {"activation_function",
       is_tanh ? "torch.nn.modules.activation.Tanh" : "torch.nn.modules.linear.Identity"}};
  add_tensors(model, dense_rows(/*has_bias=*/true), dense_prefix,
              made.more[folder + "/model.safetensors"]);
}

void add_text_norm(const PairModel& model, const EmbedderConfig& config, const std::string& folder,
                   ExportedFolder& made) {
  made.documents[folder + "/config.json"] = {{"dimension", config.text_size()}};
  add_tensors(model, text_norm_rows(), text_norm_prefix, made.more[folder + "/model.safetensors"]);
}

void add_prompts(const std::string& prompts, const std::string& usual, Json& document) {
  if (!prompts.empty()) document["prompts"] = Json::parse(prompts);
  if (!usual.empty()) document["default_prompt_name"] = usual;
}

// Name of a module in modules.json, as all versions read it.
std::string module_name(std::string_view kind) {
  return fmt::format("sentence_transformers.models.{}", kind);
}

}  // namespace

void add_pair_prompts(const PairModel& model, const std::string& folder, ExportedFolder& made) {
  if (!made.config.contains(cross_encoder_key))
    fail(
        "{}: data.prompts names prompts, which only cross-encoders have in sentence-transformers; "
        "train a classifier with data.pairs = always, or without prompts",
        folder);
  Json& document = made.documents["config_sentence_transformers.json"];
  document = {{"model_type", "CrossEncoder"},
              {activation_key, made.config[cross_encoder_key][activation_key]}};
  add_prompts(model.text.prompts, model.text.default_prompt, document);
  const Json transformer = {
      {"idx", 0}, {"name", "0"}, {"path", ""}, {"type", module_name("Transformer")}};
  made.documents["modules.json"] = Json::array({transformer});
  const Json read = {{"method", "forward"}, {"method_output_name", "logits"}};
  made.documents["sentence_bert_config.json"] = {{"transformer_task", "sequence-classification"},
                                                 {"max_seq_length", model.maximum_source_length()},
                                                 {"modality_config", {{"text", read}}},
                                                 {"module_output_name", "scores"}};
}

void add_sentence_encoder(const PairModel& model, ExportedFolder& made) {
  ModelConfig whole = model.config;
  const auto& config = whole.of<EmbedderConfig>();
  Json modules = Json::array();
  const auto add = [&](const char* kind, bool has_folder = true) {
    const size_t number = modules.size();
    std::string folder = has_folder ? fmt::format("{}_{}", number, kind) : "";
    modules.push_back({{"idx", number},
                       {"name", std::to_string(number)},
                       {"path", folder},
                       {"type", module_name(kind)}});
    return folder;
  };
  add("Transformer", /*has_folder=*/false);
  made.documents[add("Pooling") + "/config.json"] = pooling_of(config);
  if (config.text_depth > 0) add_dense(model, config, add("Dense"), made);
  if (config.text_norm) add_text_norm(model, config, add("LayerNorm"), made);
  if (config.unit_length) add("Normalize");
  made.documents["sentence_bert_config.json"] = {{"max_seq_length", config.maximum_source_length},
                                                 {"do_lower_case", false}};
  Json& whole_document = made.documents["config_sentence_transformers.json"];
  whole_document = {{"model_type", "SentenceTransformer"},
                    {"similarity_fn_name", name_of(config.text_similarity)}};
  if (config.text_cut > 0) whole_document["truncate_dim"] = config.text_cut;
  add_prompts(config.prompts, config.default_prompt, whole_document);
  made.documents["modules.json"] = modules;
}

}  // namespace attend::internal
