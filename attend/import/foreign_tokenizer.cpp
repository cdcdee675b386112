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
  if (names.empty()) return tokenizer.name(id);
  return id < std::ssize(names) ? names[static_cast<size_t>(id)] : name_by_id(id);
}

ForeignTokenizer read_foreign_tokenizer(const std::string& folder,
                                        const TokenizerSettings& settings,
                                        const OlderNames& names) {
  const std::string path = folder + "/tokenizer.json";
  std::string mask = special_token(settings, "mask_token"), bytes;
  if (std::filesystem::exists(path)) {
    bytes = read_file(path, maximum_vocabulary_bytes);
  } else {
    bytes = older_tokenizer(folder, settings, names);
    if (mask.empty()) mask = names.special.mask;
  }
  bytes = settled_tokenizer(std::move(bytes), path, settings);
  std::optional<TextTokenizer> target;
  if (settings.languages != nullptr) {
    if (settings.languages->starts_answers) target = TextTokenizer::parse(bytes, path);
    bytes = with_languages(bytes, path, settings);
  }
  TextTokenizer tokenizer = TextTokenizer::parse(std::move(bytes), path);
  const std::optional<int32_t> id = id_of(tokenizer, mask);
  ForeignTokenizer result{std::move(tokenizer), id, std::move(target)};
  if (settings.languages != nullptr)
    result.source_language = source_language(settings, result.tokenizer);
  return result;
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
