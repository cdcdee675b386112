#include <filesystem>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/hub_folder-inl.h"

namespace attend::internal {
namespace {

// transformers has what tokenizer_config.json says in place of what tokenizer.json says.
void check_alike(const JsonFile& tokenizer, const std::optional<JsonFile>& config) {
  const JsonPlace whole = tokenizer.place();
  if (!config || !whole.has("normalizer")) return;
  const JsonPlace normaliser = whole.member("normalizer");
  if (!normaliser.has("lowercase")) return;
  struct Pair {
    const char *here, *there;
  };
  for (const auto& [here, there] : {Pair{"lowercase", "do_lower_case"},
                                    Pair{"handle_chinese_chars", "tokenize_chinese_chars"}}) {
    const bool said = normaliser.flag(here, true);
    if (config->place().flag(there, said) != said)
      config->place().member(there).refuse("is not what {} says of {}; make them alike",
                                           tokenizer.path, here);
  }
}

std::optional<int32_t> id_of(const TextTokenizer& tokenizer, const std::string& token) {
  if (token.empty()) return std::nullopt;
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.name(id) == token) return id;
  return std::nullopt;
}

}  // namespace

int32_t ForeignTokenizer::size() const {
  return names.empty() ? tokenizer.size() : static_cast<int32_t>(names.size());
}

std::string ForeignTokenizer::name(int32_t id) const {
  return id < std::ssize(names) ? names[static_cast<size_t>(id)] : tokenizer.name(id);
}

ForeignTokenizer read_foreign_tokenizer(const std::string& folder, const OlderNames& names) {
  const std::string path = folder + "/tokenizer.json";
  const TokenizerSettings settings = read_tokenizer_settings(folder);
  std::string mask = special_token(settings, "mask_token"), bytes;
  if (std::filesystem::exists(path)) {
    bytes = read_file(path, maximum_vocabulary_bytes);
    check_alike({path, parse_json(bytes, path)}, settings.config);
  } else {
    bytes = older_tokenizer(folder, settings, names);
    if (mask.empty()) mask = names.special.mask;
  }
  TextTokenizer tokenizer = TextTokenizer::parse(std::move(bytes), path);
  const std::optional<int32_t> id = id_of(tokenizer, mask);
  return {std::move(tokenizer), id};
}

Vocabulary in_order(const std::vector<std::string>& names, const std::string& folder) {
  std::unordered_map<std::string, int64_t> counts;
  int64_t count = std::ssize(names);
  for (const std::string& name : names)
    if (!counts.emplace(name, count--).second)
      fail("{}: two tokens are called {}; such vocabularies are not read", folder, in_quotes(name));
  return Vocabulary::build_from(counts);
}

}  // namespace attend::internal
