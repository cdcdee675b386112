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

// Error on unsupported settings of tokenizer_config.json.
void check_settings(const TokenizerSettings& settings) {
  for (const auto& [key, token] : special_tokens)
    if (const auto place = special_place(settings, key); place && place->text() != token)
      place->refuse("is {}, which is not supported; only {} is", in_quotes(place->text()), token);
  if (!settings.config) return;
  const JsonPosition place = settings.config->place();
  if (place.flag("separate_vocabs", false))
    place.member("separate_vocabs")
        .refuse("is true, which is not supported; models with two vocabularies are not read");
  if (place.has("sp_model_kwargs") && !place.member("sp_model_kwargs").value().empty())
    place.member("sp_model_kwargs").refuse("is not supported; remove it if no text depends on it");
  if (place.flag("split_special_tokens", false))
    place.member("split_special_tokens").refuse("is true, which is not supported; only false is");
  if (place.text("truncation_side", "right") != "right")
    place.member("truncation_side").refuse("is not supported; only right is");
}

bool is_special_token(const std::string& token) {
  return std::any_of(std::begin(special_tokens), std::end(special_tokens),
                     [&](const SpecialToken& row) { return row.token == token; });
}

// Returns the tokens that the files add to vocab.json, and appends their names in the order of ids.
std::vector<AddedPiece> read_added(const TokenizerSettings& settings, const std::string& folder,
                                   std::vector<std::string>& names) {
  Json all = named_tokens(settings);
  std::stable_sort(all.begin(), all.end(), [](const Json& one, const Json& other) {
    return one.value("id", int64_t{0}) < other.value("id", int64_t{0});
  });
  std::vector<AddedPiece> added;
  for (const Json& token : all) {
    const std::string content = token["content"];
    if (is_special_token(content)) continue;
    for (const char* key : {"single_word", "lstrip", "rstrip"})
      if (token[key] == true)
        fail("{}: {} of the added token {} is true, which is not supported; only false is", folder,
             key, in_quotes(content));
    const bool is_known = std::find(names.begin(), names.end(), content) != names.end();
    if (!is_known && token.value("id", int64_t{-1}) != std::ssize(names))
      fail(
          "{}: the added token {} does not have the id {}, the next after vocab.json; save the "
          "folder anew",
          folder, in_quotes(content), names.size());
    if (!is_known) names.push_back(content);
    added.push_back({content, token["special"].get<bool>()});
  }
  return added;
}

// Names the tokens of a translator, and its unknown token.
void set_names(std::vector<std::string> names, const std::string& path, ForeignTokenizer& all) {
  all.names = std::move(names);
  for (const auto& [key, token] : special_tokens) {
    const auto found = std::find(all.names.begin(), all.names.end(), token);
    if (found == all.names.end())
      fail("{}: has no special token {}, which is {}; fetch the file anew", path, token, key);
    if (token == MarianTokenizer::unknown)
      all.unknown = static_cast<int32_t>(found - all.names.begin());
  }
  for (size_t id = 0; id < all.names.size(); ++id)
    all.names[id] = vocabulary_name(all.names[id], static_cast<int32_t>(id));
}

// Marks the languages among added tokens, and adds the others.
void mark_languages(const LanguageTokenizer& row, std::vector<AddedPiece>& added) {
  for (const std::string& token : row.tokens) {
    auto found = std::find_if(added.begin(), added.end(),
                              [&](const AddedPiece& each) { return each.content == token; });
    if (found == added.end()) found = added.insert(found, {token});
    found->is_special = true;
    found->language = language_of(token, row);
  }
}

std::string read_part(const std::string& path) {
  if (!std::filesystem::exists(path))
    fail("{}: is missing and splits texts of a translator; fetch it", path);
  return read_file(path, maximum_vocabulary_bytes);
}

}  // namespace

ForeignTokenizer read_side_tokenizers(const std::string& folder,
                                      const TokenizerSettings& settings) {
  check_settings(settings);
  const std::string path = folder + "/vocab.json";
  std::vector<std::string> names = parse_vocabulary(read_part(path), path);
  const std::vector<AddedPiece> added = read_added(settings, folder, names);
  const auto side = [&](const char* name) {
    const std::string file = folder + "/" + name;
    return TextTokenizer::parse(with_added_pieces(read_part(file), added), file);
  };
  ForeignTokenizer all{.tokenizer = side("source.spm")};
  all.target = side("target.spm").without_special_tokens();
  set_names(std::move(names), path, all);
  return all;
}

ForeignTokenizer read_language_pieces(const std::string& folder,
                                      const TokenizerSettings& settings) {
  check_settings(settings);
  const LanguageTokenizer& row = *settings.languages;
  const std::string path = folder + "/vocab.json", file = folder + "/sentencepiece.bpe.model";
  std::vector<std::string> names = parse_vocabulary(read_part(path), path);
  names.insert(names.end(), row.tokens.begin(), row.tokens.end());
  std::vector<AddedPiece> added = read_added(settings, folder, names);
  mark_languages(row, added);
  const std::string pieces = read_part(file);
  SentencePiece::parse(pieces, file);  // errors name the file; the ending .spm is only a kind
  ForeignTokenizer all{.tokenizer =
                           TextTokenizer::parse(with_added_pieces(pieces, added), file + ".spm")};
  all.target = all.tokenizer.without_special_tokens();
  set_names(std::move(names), path, all);
  all.source_language = source_language(settings, all.tokenizer);
  return all;
}

}  // namespace attend::internal
