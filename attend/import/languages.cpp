#include <algorithm>
#include <array>
#include <string_view>

#include "attend/base/settings.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend::internal {
namespace {

constexpr const char *class_key = "tokenizer_class", *source_key = "src_lang";
constexpr const char* usual_end = "</s>";

bool is_small(char letter) { return letter >= 'a' && letter <= 'z'; }
bool is_capital(char letter) { return letter >= 'A' && letter <= 'Z'; }

bool has_form(std::string_view token, std::string_view form) {
  return std::equal(token.begin(), token.end(), form.begin(), form.end(),
                    [](char letter, char expected) {
                      if (expected == 'x') return is_small(letter);
                      if (expected == 'X') return is_capital(letter);
                      return letter == expected;
                    });
}

std::string without_ending(std::string name, std::string_view ending) {
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

// Classes that say nothing about languages.
bool is_general(const std::string& name) {
  constexpr std::array<std::string_view, 3> general = {
      "PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"};
  return std::find(general.begin(), general.end(), name) != general.end();
}

Json special_part(const std::string& token) {
  return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
}

Json text_part(const char* id) { return {{"Sequence", {{"id", id}, {"type_id", 0}}}}; }

int64_t id_in(const Json& added, const std::string& token, const std::string& path) {
  for (const Json& entry : added)
    if (entry.value("content", "") == token) return entry.at("id").get<int64_t>();
  fail("{}: has no special token {}, which is put around texts; fetch the file anew", path,
       in_quotes(token));
}

// Texts with their language and their end; in the older form both come last.
Json sequence_of(const std::string& language, const std::string& end, bool is_older,
                 const Json& added, const std::string& path) {
  Json before = Json::array(), after = Json::array();
  if (!is_older) before.push_back(special_part(language));
  after.push_back(special_part(end));
  if (is_older) after.push_back(special_part(language));
  Json single = before, pair = before, tokens = Json::object();
  single.push_back(text_part("A"));
  for (const char* text : {"A", "B"}) pair.push_back(text_part(text));
  for (Json* each : {&single, &pair}) each->insert(each->end(), after.begin(), after.end());
  for (const std::string& token : {language, end})
    tokens[token] = {{"id", token},
                     {"ids", Json::array({id_in(added, token, path)})},
                     {"tokens", Json::array({token})}};
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", tokens}};
}

std::string said_source(const TokenizerSettings& settings) {
  if (!settings.config || !settings.config->place().has(source_key))
    return settings.languages->usual;
  return settings.config->place().member(source_key).text();
}

// Error if the source's language is unknown.
void check_source(const TokenizerSettings& settings, const std::string& language,
                  const std::vector<std::string>& known, const std::string& path) {
  if (std::find(known.begin(), known.end(), language) != known.end()) return;
  const std::string meant = nearest(language, known);
  const std::string remedy = meant.empty()
                                 ? fmt::format("name one of its {} languages", known.size())
                                 : fmt::format("did you mean {}?", meant);
  if (settings.config && settings.config->place().has(source_key))
    settings.config->place()
        .member(source_key)
        .refuse("is {}, and {} has no such language; {}", in_quotes(language), path, remedy);
  fail("{}: has no language {}, and tokenizer_config.json names no src_lang; {}", path,
       in_quotes(language), remedy);
}

}  // namespace

const LanguageTokenizer& language_tokenizer(const TokenizerSettings& settings,
                                            const JsonPosition& config,
                                            const std::vector<LanguageTokenizer>& rows) {
  const bool is_own = settings.config && settings.config->place().has(class_key);
  const JsonPosition place = is_own ? settings.config->place() : config;
  const std::string name = without_ending(place.text(class_key, ""), "Fast");
  std::string known;
  for (const LanguageTokenizer& row : rows) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  if (name.empty()) return rows.front();
  if (is_general(place.text(class_key, "")))
    return *std::find_if(rows.begin(), rows.end(),
                         [](const LanguageTokenizer& row) { return !row.starts_answers; });
  place.member(class_key).refuse("is {}, which is not read; {} is", in_quotes(name), known);
}

std::string language_of(const std::string& token, const LanguageTokenizer& row) {
  const bool marks = std::any_of(row.forms.begin(), row.forms.end(),
                                 [&](const std::string& form) { return has_form(token, form); });
  if (!marks) return {};
  const size_t begin = token.find_first_not_of('_'), end = token.find_last_not_of('_');
  return token.substr(begin, end + 1 - begin);
}

std::string with_languages(const std::string& bytes, const std::string& path,
                           const TokenizerSettings& settings) {
  Json whole = parse_json(bytes, path);
  const JsonPosition file(whole, path);
  Json languages = Json::object();
  std::vector<std::string> known;
  for (const JsonPosition& entry : file.member("added_tokens").list(1 << 20)) {
    const std::string content = entry.text("content", "");
    const std::string language = language_of(content, *settings.languages);
    if (language.empty() || !entry.flag("special", false)) continue;
    entry.member("id").number();  // an Error unless it is one
    languages[language] = content;
    known.push_back(language);
  }
  if (known.empty())
    fail(
        "{}: no special token marks a language, such as {}; save the folder anew, with all "
        "languages",
        path, settings.languages->usual);
  const std::string source = said_source(settings);
  check_source(settings, source, known, path);
  const std::string said = special_token(settings, "eos_token");
  const bool is_older =
      settings.languages->starts_answers ||
      (settings.config && settings.config->place().flag("legacy_behaviour", false));
  const Json sequence =
      sequence_of(languages[source].get<std::string>(), said.empty() ? usual_end : said, is_older,
                  whole["added_tokens"], path);
  whole["post_processor"] = sequence;
  whole[languages_key] = languages;
  return whole.dump();
}

std::string source_language(const TokenizerSettings& settings, const TextTokenizer& tokenizer) {
  std::string source = said_source(settings);
  check_source(settings, source, tokenizer.languages(), "the tokenizer");
  return source;
}

std::string language_of(const ForeignTokenizer& tokenizer, int64_t token) {
  const std::string name = tokenizer.name(static_cast<int32_t>(token));
  for (const std::string& language : tokenizer.tokenizer.languages())
    if (tokenizer.tokenizer.in_language(language).language_token() == name) return language;
  return {};
}

}  // namespace attend::internal
