#include <filesystem>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/tokenizers/vocabulary_files.h"

namespace attend::internal {
namespace {

using OptionalJson = std::optional<JsonFile>;

// transformers has what tokenizer_config.json says in place of what tokenizer.json says.
void check_alike(const JsonFile& tokenizer, const OptionalJson& config) {
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

Json special_entry(const std::string& token, int64_t id) {
  return {{"id", id},        {"content", token},    {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// The tokenizer.json of BERT's older files.
std::string word_piece_json(const std::string& path, const OptionalJson& config) {
  const std::string bytes = read_file(path, maximum_vocabulary_bytes);
  Json vocabulary = Json::object();
  int64_t next = 0;
  for (size_t begin = 0; begin < bytes.size(); ++next) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string token = bytes.substr(begin, end - begin);
    if (token.ends_with('\r')) token.pop_back();
    if (!vocabulary.emplace(token, next).second)
      fail("{}:{}: {} is there twice; fetch the file anew", path, next + 1, in_quotes(token));
    begin = end + 1;
  }
  const auto named = [&](const char* key, const char* otherwise) {
    const std::string token = special_token(config, key);
    return token.empty() ? std::string(otherwise) : token;
  };
  const std::string unknown = named("unk_token", "[UNK]"), cls = named("cls_token", "[CLS]"),
                    sep = named("sep_token", "[SEP]"), padding = named("pad_token", "[PAD]"),
                    mask = named("mask_token", "[MASK]");
  Json added = Json::array();
  for (const std::string& token : {padding, unknown, cls, sep, mask}) {
    if (!vocabulary.contains(token))
      fail("{}: has no special token {}; name those that there are in tokenizer_config.json", path,
           in_quotes(token));
    added.push_back(special_entry(token, vocabulary[token].get<int64_t>()));
  }
  // Its errors name tokens that are empty or no UTF-8.
  parse_tokenizer(
      bytes, WordPieceFiles{.vocabulary = path, .special = {unknown, cls, sep, padding, mask}});
  const auto flag = [&](const char* key) { return !config || config->place().flag(key, true); };
  Json strip = nullptr;
  if (config && config->place().has("strip_accents"))
    strip = config->place().flag("strip_accents", true);
  const Json json = {{"version", "1.0"},
                     {"added_tokens", added},
                     {"normalizer",
                      {{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", flag("tokenize_chinese_chars")},
                       {"strip_accents", strip},
                       {"lowercase", flag("do_lower_case")}}},
                     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                     {"post_processor",
                      {{"type", "BertProcessing"},
                       {"sep", Json::array({sep, vocabulary[sep]})},
                       {"cls", Json::array({cls, vocabulary[cls]})}}},
                     {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                     {"model",
                      {{"type", "WordPiece"},
                       {"unk_token", unknown},
                       {"continuing_subword_prefix", "##"},
                       {"max_input_chars_per_word", 100},
                       {"vocab", vocabulary}}}};
  return json.dump();
}

std::optional<int32_t> id_of(const TextTokenizer& tokenizer, const std::string& token) {
  if (token.empty()) return std::nullopt;
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.name(id) == token) return id;
  return std::nullopt;
}

}  // namespace

std::string special_token(const OptionalJson& file, const char* key) {
  if (!file || !file->place().has(key)) return "";
  const JsonPlace token = file->place().member(key);
  return token.value().is_object() ? token.member("content").text() : token.text();
}

int32_t ForeignTokenizer::size() const {
  return names.empty() ? tokenizer.size() : static_cast<int32_t>(names.size());
}

std::string ForeignTokenizer::name(int32_t id) const {
  return id < std::ssize(names) ? names[static_cast<size_t>(id)] : tokenizer.name(id);
}

ForeignTokenizer read_foreign_tokenizer(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json", older = folder + "/vocab.txt";
  const OptionalJson config = find_json_file(folder + "/tokenizer_config.json");
  const OptionalJson special = find_json_file(folder + "/special_tokens_map.json");
  std::string mask = special_token(config, "mask_token");
  if (mask.empty()) mask = special_token(special, "mask_token");
  std::string bytes;
  if (std::filesystem::exists(path)) {
    bytes = read_file(path, maximum_vocabulary_bytes);
    check_alike({path, parse_json(bytes, path)}, config);
  } else if (std::filesystem::exists(older)) {
    bytes = word_piece_json(older, config);
    if (mask.empty()) mask = "[MASK]";
  } else {
    fail(
        "{}: holds neither tokenizer.json nor vocab.txt; write the first by Python: "
        "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers",
        folder);
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
