#include <algorithm>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/tokenizers/marian_tokenizer.h"

namespace attend::internal {
namespace {

struct SpecialToken {
  const char* key;
  std::string_view token;
};

constexpr SpecialToken special_tokens[] = {{"unk_token", MarianTokenizer::unknown},
                                           {"eos_token", MarianTokenizer::end},
                                           {"pad_token", MarianTokenizer::padding}};

// What tokenizer_config.json may say otherwise.
void check_settings(const TokenizerSettings& settings) {
  for (const auto& [key, token] : special_tokens)
    if (const auto place = special_place(settings, key); place && place->text() != token)
      place->refuse("is {}, which is not honoured; only {} is", in_quotes(place->text()), token);
  if (!settings.config) return;
  const JsonPlace place = settings.config->place();
  if (place.flag("separate_vocabs", false))
    place.member("separate_vocabs")
        .refuse("is true, which is not honoured; models with two vocabularies are not read");
  for (const char* key : {"additional_special_tokens", "sp_model_kwargs"})
    if (place.has(key) && !place.member(key).value().empty())
      place.member(key).refuse("is not honoured; take it out, if no text depends on it");
}

std::string read_part(const std::string& path) {
  if (!std::filesystem::exists(path))
    fail("{}: is missing, and splits texts of a translator; fetch it", path);
  return read_file(path, maximum_vocabulary_bytes);
}

}  // namespace

ForeignTokenizer read_side_tokenizers(const std::string& folder) {
  check_settings(read_tokenizer_settings(folder));
  const auto side = [&](const char* name) {
    const std::string path = folder + "/" + name;
    return TextTokenizer::parse(read_part(path), path);
  };
  ForeignTokenizer all{.tokenizer = side("source.spm")};
  all.target = side("target.spm").without_special_tokens();
  const std::string path = folder + "/vocab.json";
  all.names = parse_vocabulary(read_part(path), path);
  for (const auto& [key, token] : special_tokens) {
    const auto found = std::find(all.names.begin(), all.names.end(), token);
    if (found == all.names.end())
      fail("{}: has no special token {}, which is {}; fetch the file anew", path, token, key);
    if (token == MarianTokenizer::unknown)
      all.unknown = static_cast<int32_t>(found - all.names.begin());
  }
  for (size_t id = 0; id < all.names.size(); ++id)
    all.names[id] = vocabulary_name(all.names[id], static_cast<int32_t>(id));
  return all;
}

}  // namespace attend::internal
