#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/import/config_keys-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/import/sentence_encoder-inl.h"

namespace attend::internal {
namespace {

const PoolingName& find_pooling(const JsonPosition& place) {
  const std::string name = place.text();
  std::string known;
  for (const PoolingName& row : pooling_names()) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  place.refuse("is the pooling {}, which is not read; {} are", in_quotes(name), known);
}

// Older files have a flag per pooling; newer ones name them.
std::vector<PoolingName> chosen_poolings(const JsonPosition& place) {
  std::vector<PoolingName> chosen;
  if (place.has("pooling_mode")) {
    const JsonPosition mode = place.member("pooling_mode");
    if (!mode.value().is_array()) return {find_pooling(mode)};
    for (const JsonPosition& each : mode.list()) chosen.push_back(find_pooling(each));
    return chosen;
  }
  for (const PoolingName& row : pooling_names())
    if (place.flag(row.flag.c_str(), false)) chosen.push_back(row);
  return chosen;
}

void check_flags(const JsonPosition& place) {
  const auto& table = pooling_names();
  for (const auto& [key, value] : place.value().items())
    if (key.starts_with("pooling_mode_") &&
        std::none_of(table.begin(), table.end(),
                     [&flag = key](const PoolingName& row) { return row.flag == flag; }))
      place.member(key.c_str()).refuse("is a pooling that is not read");
}

void read_pooling(const JsonFile& file, EmbedderConfig& config) {
  const JsonPosition place = file.place();
  check_flags(place);
  const std::vector<PoolingName> chosen = chosen_poolings(place);
  if (chosen.empty()) place.refuse("names no pooling; one or more are read");
  config.text_vector.clear();
  for (const PoolingName& row : chosen)
    config.text_vector += (config.text_vector.empty() ? "" : ", ") + name_of(row.vector);
  config.text_vectors();
  config.pool_prompt = place.flag("include_prompt", true);
}

// Error if the member is present and has another value.
void check_only(const JsonPosition& place, const char* key, const Json& only) {
  if (place.has(key) && place.member(key).value() != only)
    place.member(key).refuse("is {}, which is not supported; only {} is",
                             place.member(key).value().dump(), only.dump());
}

void read_transformer(const std::string& folder, TextLayer& layer) {
  read_text_settings(folder, "feature-extraction", layer);
  const std::optional<JsonFile> file = find_json_file(folder + "/sentence_bert_config.json");
  if (!file) return;
  const JsonPosition place = file->place();
  check_only(place, "module_output_name", "token_embeddings");
  if (place.has("modality_config") && place.member("modality_config").has("text"))
    check_only(place.member("modality_config").member("text"), "method_output_name",
               "last_hidden_state");
}

// Adds the tensors of a layer, under names that the encoder does not have.
void add_tensors(const std::string& folder, const char* prefix, const std::vector<TensorRow>& rows,
                 TextLayer& layer) {
  for (auto& [name, tensor] : read_foreign_tensors(folder).tensors)
    layer.file.tensors[prefix + name] = std::move(tensor);
  layer.rows.insert(layer.rows.end(), rows.begin(), rows.end());
}

void check_width(const JsonPosition& place, const char* key, int64_t depth) {
  const int64_t read = size_in(place, key, 65536);
  if (read != depth) place.member(key).refuse("is {}, and vectors have depth {}", read, depth);
}

// Reads a layer after the pooling.
void read_dense(const std::string& folder, EmbedderConfig& config, TextLayer& layer) {
  const JsonFile file = read_json_file(folder + "/config.json");
  const JsonPosition place = file.place();
  check_keys(place, {{"in_features"},
                     {"out_features"},
                     {"bias"},
                     {"activation_function"},
                     {"module_input_name", R"("sentence_embedding")"},
                     {"module_output_name", R"("sentence_embedding")"},
                     {"use_residual", "false"}});
  check_width(place, "in_features", config.pooled_depth());
  config.text_depth = size_in(place, "out_features", 65536);
  const std::string activation = place.member("activation_function").text();
  const std::string kind = activation.substr(activation.rfind('.') + 1);
  if (kind == "Tanh")
    config.text_activation = TextActivation::tanh;
  else if (kind != "Identity")
    place.member("activation_function")
        .refuse("is {}, which is not supported; Tanh and Identity are", in_quotes(activation));
  add_tensors(folder, dense_prefix, dense_rows(place.flag("bias", true)), layer);
}

void read_text_norm(const std::string& folder, EmbedderConfig& config, TextLayer& layer) {
  const JsonFile file = read_json_file(folder + "/config.json");
  check_keys(file.place(), {{"dimension"}});
  check_width(file.place(), "dimension", config.text_size());
  config.text_norm = true;
  add_tensors(folder, text_norm_prefix, text_norm_rows(), layer);
}

bool is_folder_name(const std::string& path) {
  return !path.empty() && path.find('/') == path.npos && !path.starts_with('.');
}

// Supported modules, in order.
enum class Module { transformer, pooling, dense, text_norm, normalise, dropout, none };

Module module_of(const JsonPosition& module, const std::string& path) {
  const std::string type = module.member("type").text();
  const std::string kind = type.substr(type.rfind('.') + 1);
  if (kind == "Transformer" && path.empty()) return Module::transformer;
  if (kind == "Pooling" && is_folder_name(path)) return Module::pooling;
  if (kind == "Dense" && is_folder_name(path)) return Module::dense;
  if (kind == "LayerNorm" && is_folder_name(path)) return Module::text_norm;
  if (kind == "Normalize") return Module::normalise;
  if (kind == "Dropout") return Module::dropout;
  module.refuse(
      "is {} in {}, which is not read; Transformer here, Pooling, Dense, LayerNorm, Normalize and "
      "Dropout are",
      in_quotes(type), in_quotes(path));
}

void read_module(Module module, const std::string& folder, const std::string& path,
                 EmbedderConfig& config, TextLayer& layer) {
  switch (module) {
    case Module::transformer:
      return read_transformer(folder, layer);
    case Module::pooling:
      return read_pooling(read_json_file(folder + "/" + path + "/config.json"), config);
    case Module::dense:
      return read_dense(folder + "/" + path, config, layer);
    case Module::text_norm:
      return read_text_norm(folder + "/" + path, config, layer);
    case Module::normalise:
      config.unit_length = true;
      return;
    default:
      return;  // dropout has no effect outside of training
  }
}

void read_similarity(const JsonPosition& place, EmbedderConfig& config) {
  if (!place.has("similarity_fn_name")) return;
  const JsonPosition measure = place.member("similarity_fn_name");
  const std::string name = measure.text();
  const EnumNames names = names_of(TextSimilarity{});
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    measure.refuse("is {}, which is not read; {} are", in_quotes(name), fmt::join(names, ", "));
  config.text_similarity = static_cast<TextSimilarity>(found - names.begin());
}

// Reads the settings that apply to all modules.
void read_whole(const std::string& folder, EmbedderConfig& config) {
  const std::optional<JsonFile> file =
      find_json_file(folder + "/config_sentence_transformers.json");
  if (!file) return;
  const JsonPosition place = file->place();
  check_only(place, "model_type", "SentenceTransformer");
  read_prompts(place, config.prompts, config.default_prompt);
  read_similarity(place, config);
  if (!place.has("truncate_dim")) return;
  const int64_t kept = size_in(place, "truncate_dim", 65536);
  if (kept < config.text_size()) config.text_cut = kept;
}

}  // namespace

// In the order in which older files concatenate them.
const std::vector<PoolingName>& pooling_names() {
  static const std::vector<PoolingName> table = {
      {"pooling_mode_cls_token", "cls", TextVector::first},
      {"pooling_mode_max_tokens", "max", TextVector::maximum},
      {"pooling_mode_mean_tokens", "mean", TextVector::mean},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", TextVector::mean_by_root},
      {"pooling_mode_weightedmean_tokens", "weightedmean", TextVector::weighted_mean},
      {"pooling_mode_lasttoken", "lasttoken", TextVector::last}};
  return table;
}

std::vector<TensorRow> dense_rows(bool has_bias) {
  const std::string prefix = dense_prefix;
  return {{prefix + "linear.weight", "text_layer.weight"},
          {has_bias ? prefix + "linear.bias" : "", "text_layer.bias"}};
}

std::vector<TensorRow> text_norm_rows() {
  const std::string prefix = text_norm_prefix;
  return {{prefix + "norm.weight", "text_norm.weight"}, {prefix + "norm.bias", "text_norm.bias"}};
}

void read_prompts(const JsonPosition& settings, std::string& prompts, std::string& usual) {
  Json named = Json::object();
  if (settings.has("prompts")) {
    const JsonPosition read = settings.member("prompts");
    if (!read.value().is_object()) read.refuse("is not an object of names and texts");
    named = read.value();
    for (auto& [name, text] : named.items()) {
      if (name.empty()) read.refuse("has a prompt without a name");
      if (text.is_null()) text = "";  // as in sentence-transformers
      if (!text.is_string()) read.refuse("has {} that is not a text", in_quotes(name));
    }
  }
  if (!named.empty()) prompts = named.dump();
  if (!settings.has("default_prompt_name")) return;
  const JsonPosition name = settings.member("default_prompt_name");
  usual = name.text();
  if (!named.contains(usual)) name.refuse("is {}, which prompts lacks", in_quotes(usual));
}

void read_text_settings(const std::string& folder, const char* task, TextLayer& layer) {
  const std::optional<JsonFile> file = find_json_file(folder + "/sentence_bert_config.json");
  if (!file) return;
  const JsonPosition place = file->place();
  check_only(place, "transformer_task", task);
  for (const char* key : {"processing_kwargs", "model_args", "tokenizer_args", "processor_kwargs"})
    check_only(place, key, Json::object());
  for (const char* key : {"query_length", "document_length", "query_expansion"})
    if (place.has(key)) place.member(key).refuse("is set, which is not supported; only null is");
  layer.lowercase = place.flag("do_lower_case", false);
  if (!place.has("max_seq_length")) return;
  layer.longest = place.member("max_seq_length").number();
  if (*layer.longest < 1) place.member("max_seq_length").refuse("is 0; set 1 or more");
}

TextLayer read_sentence_encoder(const std::string& folder, EmbedderConfig& config) {
  TextLayer layer;
  const std::optional<JsonFile> modules = find_json_file(folder + "/modules.json");
  if (!modules) return layer;
  Module before = Module::none;
  for (const JsonPosition& place : modules->place().list()) {
    const std::string path = place.text("path", "");
    const Module module = module_of(place, path);
    if (module == Module::dropout) continue;
    if (before != Module::none && module <= before)
      place.refuse("follows a module that it should precede; such orders are not read");
    read_module(module, folder, path, config, layer);
    before = module;
  }
  read_whole(folder, config);
  return layer;
}

}  // namespace attend::internal
