#include <algorithm>
#include <optional>
#include <vector>

#include "attend/base/error.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/import/sentence_encoder-inl.h"

namespace attend::internal {
namespace {

struct PoolingName {
  std::string name;  // behind pooling_mode_
  std::string short_name;
  TextVector vector;
};

const std::vector<PoolingName>& pooling_names() {
  static const std::vector<PoolingName> table = {{"mean_tokens", "mean", TextVector::mean},
                                                 {"cls_token", "cls", TextVector::first}};
  return table;
}

void refuse_pooling(const JsonPlace& place, const std::string& name) {
  place.refuse("is the pooling {}, which is not read; mean and cls alone are", in_quotes(name));
}

// Older files have a flag for each way, of which one must be set; newer ones name it.
void read_pooling(const JsonFile& file, EmbedderConfig& config) {
  const JsonPlace place = file.place();
  std::vector<std::string> chosen;
  if (place.has("pooling_mode") && place.member("pooling_mode").value().is_string())
    chosen.push_back(place.text("pooling_mode", ""));
  constexpr std::string_view flag = "pooling_mode_";
  for (const auto& [key, value] : place.value().items())
    if (key.starts_with(flag) && place.flag(key.c_str(), false))
      chosen.push_back(key.substr(flag.size()));
  if (chosen.size() != 1) place.refuse("has {} ways to pool; one is read", chosen.size());
  const auto& table = pooling_names();
  const auto found = std::find_if(table.begin(), table.end(), [&](const PoolingName& row) {
    return row.name == chosen[0] || row.short_name == chosen[0];
  });
  if (found == table.end()) refuse_pooling(place, chosen[0]);
  config.text_vector = found->vector;
}

void read_transformer(const std::string& folder, EmbedderConfig& config) {
  const std::optional<JsonFile> file = find_json_file(folder + "/sentence_bert_config.json");
  if (!file) return;
  const JsonPlace place = file->place();
  if (place.flag("do_lower_case", false))
    place.member("do_lower_case").refuse("is true, which is not honoured; only false is");
  if (!place.has("max_seq_length")) return;
  const int64_t most = place.member("max_seq_length").number();
  if (most < 1) place.member("max_seq_length").refuse("is 0; set 1 or more");
  config.maximum_source_length = std::min(config.maximum_source_length, most);
}

void read_module(const JsonPlace& module, const std::string& folder, EmbedderConfig& config) {
  const std::string type = module.member("type").text();
  const std::string path = module.text("path", "");
  const std::string kind = type.substr(type.rfind('.') + 1);
  constexpr std::string_view transformer = "Transformer", pooling = "Pooling",
                             normalise = "Normalize";
  if (kind == transformer && path.empty()) return read_transformer(folder, config);
  if (kind == normalise) {
    config.unit_length = true;
    return;
  }
  if (kind != pooling || path.find('/') != path.npos || path.starts_with('.'))
    module.refuse("is {} in {}, which is not read; Transformer here, Pooling and Normalize are",
                  in_quotes(type), in_quotes(path));
  read_pooling(read_json_file(folder + "/" + path + "/config.json"), config);
}

}  // namespace

void read_sentence_encoder(const std::string& folder, EmbedderConfig& config) {
  const std::optional<JsonFile> modules = find_json_file(folder + "/modules.json");
  if (!modules) return;
  for (const JsonPlace& module : modules->place().list()) read_module(module, folder, config);
  const std::optional<JsonFile> prompts =
      find_json_file(folder + "/config_sentence_transformers.json");
  if (prompts && prompts->place().has("default_prompt_name"))
    prompts->place()
        .member("default_prompt_name")
        .refuse("is set, so that a prompt would be put before each text, which is not honoured");
}

}  // namespace attend::internal
