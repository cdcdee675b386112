#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/import/foreign_tokenizer-inl.h"

namespace attend::internal {
namespace {

namespace fs = std::filesystem;

// Key of a special token, and its member here.
struct SpecialKey {
  const char* key;
  std::string SpecialTokenNames::*name;  // null: only matched in texts
};

constexpr std::array<SpecialKey, 7> special_keys = {{{"unk_token", &SpecialTokenNames::unknown},
                                                     {"cls_token", &SpecialTokenNames::begin},
                                                     {"sep_token", &SpecialTokenNames::end},
                                                     {"pad_token", &SpecialTokenNames::padding},
                                                     {"mask_token", &SpecialTokenNames::mask},
                                                     {"bos_token", nullptr},
                                                     {"eos_token", nullptr}}};

Json entry_of(const JsonPosition& token, bool special) {
  return {{"content", token.member("content").text()},
          {"single_word", token.flag("single_word", false)},
          {"lstrip", token.flag("lstrip", false)},
          {"rstrip", token.flag("rstrip", false)},
          {"normalized", token.flag("normalized", !special)},
          {"special", token.flag("special", special)}};
}

// Entries of tokens in the files. If several files describe a token, the first entry counts.
class Entries {
 public:
  explicit Entries(const TokenizerSettings& settings) : settings_(settings) {}

  Json described() {
    add_described();
    return std::move(entries_);
  }

  Json all() {
    add_described();
    for (const std::optional<JsonFile>* file : {&settings_.config, &settings_.special})
      if (*file) add_special((*file)->place());
    if (settings_.added) add_ids(settings_.added->place());
    return std::move(entries_);
  }

 private:
  // Returns the entry of a token; leaves an existing one unchanged.
  Json& add(const JsonPosition& token, bool special) {
    const std::string content = token.member("content").text();
    const auto [place, is_new] = places_.emplace(content, entries_.size());
    if (is_new) entries_.push_back(entry_of(token, special));
    return entries_[place->second];
  }

  Json& add_plain(const std::string& content, const std::string& file, bool special) {
    const Json plain = {{"content", content}};
    return add({plain, file}, special);
  }

  // {"50264": {"content": "<mask>", ..}}
  void add_described() {
    constexpr const char* key = "added_tokens_decoder";
    if (!settings_.config || !settings_.config->place().has(key)) return;
    const JsonPosition all = settings_.config->place().member(key);
    if (!all.value().is_object()) all.refuse("is not an object");
    for (const auto& [id, token] : all.value().items()) {
      const JsonPosition place = all.member(id.c_str());
      const bool is_number = id.size() < 10 && id.find_first_not_of("0123456789") == id.npos;
      if (id.empty() || !is_number) place.refuse("has a name that is not an id");
      add(place, false)["id"] = std::stoi(id);
    }
  }

  void add_special(const JsonPosition& file) {
    for (const SpecialKey& row : special_keys)
      if (file.has(row.key) && file.member(row.key).value().is_object())
        add(file.member(row.key), true);
    // transformers 5 uses the second name. Some files of version 4 have an object of names there.
    for (const char* more : {"additional_special_tokens", "extra_special_tokens"}) {
      if (!file.has(more)) continue;
      const JsonPosition place = file.member(more);
      if (!place.value().is_object())
        for (const JsonPosition& token : place.list()) add_listed(token);
      else
        for (const auto& [key, token] : place.value().items())
          add_listed(place.member(key.c_str()));
    }
  }

  void add_listed(const JsonPosition& token) {
    if (token.value().is_object())
      add(token, true);
    else
      add_plain(token.text(), token.file(), true);
  }

  // {"<new>": 50265}
  void add_ids(const JsonPosition& file) {
    if (!file.value().is_object()) file.refuse("is not an object");
    for (const auto& [content, id] : file.value().items()) {
      const int64_t number = file.member(content.c_str()).number();
      add_plain(content, file.file(), is_special(content))["id"] = number;
    }
  }

  bool is_special(const std::string& content) const {
    for (const SpecialKey& row : special_keys)
      if (special_token(settings_, row.key) == content) return true;
    return false;
  }

  const TokenizerSettings& settings_;
  Json entries_ = Json::array();
  std::unordered_map<std::string, size_t> places_;  // indices of entries, by content
};

}  // namespace

Json described_tokens(const TokenizerSettings& settings) { return Entries(settings).described(); }

Json named_tokens(const TokenizerSettings& settings) {
  Json tokens = Entries(settings).all();
  for (const SpecialKey& row : special_keys) {
    const std::string content = special_token(settings, row.key);
    if (content.empty()) continue;
    const Json plain = {{"content", content}};
    tokens.push_back(entry_of({plain, content}, true));
  }
  return tokens;
}

namespace {

OlderTokens tokens_of(const TokenizerSettings& settings, const OlderNames& names) {
  OlderTokens tokens{.special = names.special, .added = Entries(settings).all()};
  for (const SpecialKey& row : special_keys) {
    if (row.name == nullptr) continue;
    const std::string said = special_token(settings, row.key);
    // A type without a token of this kind puts none around texts.
    if (!said.empty() && !(tokens.special.*row.name).empty()) tokens.special.*row.name = said;
  }
  return tokens;
}

bool flag(const TokenizerSettings& settings, const char* key, bool otherwise) {
  return settings.config ? settings.config->place().flag(key, otherwise) : otherwise;
}

std::vector<std::string> sentinels_of(const TokenizerSettings& settings, int64_t usual,
                                      bool rising) {
  constexpr const char* key = "extra_ids";
  constexpr int64_t most = 100'000;
  int64_t count = usual;
  if (settings.config) count = settings.config->place().number(key, usual);
  if (count < 0 || count > most)
    settings.config->place().member(key).refuse("is {}; 0 to {} are read", count, most);
  std::vector<std::string> tokens;
  while (count > 0) tokens.push_back(fmt::format("<extra_id_{}>", --count));
  if (rising) std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

// Special tokens after the pieces.
std::vector<std::string> last_tokens(const TokenizerSettings& settings, const OlderNames& names) {
  if (settings.languages != nullptr) return settings.languages->tokens;
  return sentinels_of(settings, names.sentinels, /*rising=*/false);
}

std::string read_words(const std::string& path, const TokenizerSettings& settings, bool two_ends,
                       OlderTokens tokens) {
  WordPieceFiles files{.vocabulary = path,
                       .lowercase = flag(settings, "do_lower_case", true),
                       .separate_cjk = flag(settings, "tokenize_chinese_chars", true),
                       .two_ends = two_ends,
                       .tokens = std::move(tokens)};
  if (settings.config && settings.config->place().has("strip_accents"))
    files.strip_accents = flag(settings, "strip_accents", true);
  return tokenizer_json(read_file(path, maximum_vocabulary_bytes), files).dump();
}

std::string read_byte_pairs(const std::string& path, const TokenizerSettings& settings,
                            OlderTokens tokens) {
  const std::string merges = fs::path(path).replace_filename("merges.txt");
  if (!fs::exists(merges)) fail("{}: is missing and belongs to vocab.json; fetch it", merges);
  if (tokens.special.begin.empty() && flag(settings, "add_bos_token", false))
    settings.config->place()
        .member("add_bos_token")
        .refuse("is true, which is not supported; remove it if texts may begin without it");
  const ByteLevelFiles files{.vocabulary = path,
                             .merges = merges,
                             .prefix_space = flag(settings, "add_prefix_space", false),
                             .tokens = std::move(tokens)};
  return tokenizer_json(read_file(path, maximum_vocabulary_bytes),
                        read_file(merges, maximum_vocabulary_bytes), files)
      .dump();
}

}  // namespace

TokenizerSettings read_tokenizer_settings(const std::string& folder) {
  return {find_json_file(folder + "/tokenizer_config.json"),
          find_json_file(folder + "/special_tokens_map.json"),
          find_json_file(folder + "/added_tokens.json")};
}

std::optional<JsonPosition> special_place(const TokenizerSettings& settings, const char* key) {
  for (const std::optional<JsonFile>* file : {&settings.config, &settings.special}) {
    if (!*file || !(*file)->place().has(key)) continue;
    const JsonPosition token = (*file)->place().member(key);
    return token.value().is_object() ? token.member("content") : token;
  }
  return std::nullopt;
}

std::string special_token(const TokenizerSettings& settings, const char* key) {
  const std::optional<JsonPosition> place = special_place(settings, key);
  return place ? place->text() : "";
}

std::string older_tokenizer(const std::string& folder, const TokenizerSettings& settings,
                            const OlderNames& names) {
  const std::string words = folder + "/vocab.txt", ids = folder + "/vocab.json",
                    pieces = folder + "/" + names.pieces;
  OlderTokens tokens = tokens_of(settings, names);
  if (fs::exists(words) && names.lists_tokens)
    return tokenizer_json(read_file(words, maximum_vocabulary_bytes),
                          TokenListFiles{.vocabulary = words, .tokens = std::move(tokens)})
        .dump();
  const std::string made_by =
      settings.config ? settings.config->place().text("tokenizer_class", "") : "";
  if (!names.bytes.empty() && made_by == names.bytes)
    return tokenizer_json(ByteFiles{.name = folder,
                                    .last = sentinels_of(settings, 125, /*rising=*/true),
                                    .tokens = std::move(tokens)})
        .dump();
  if (fs::exists(words)) return read_words(words, settings, names.two_ends, std::move(tokens));
  if (fs::exists(ids)) return read_byte_pairs(ids, settings, std::move(tokens));
  constexpr const char* by_punctuation = "split_by_punct";
  if (names.pieces_like_bert && flag(settings, by_punctuation, false))
    settings.config->place()
        .member(by_punctuation)
        .refuse("is true, which is not read from older files; write tokenizer.json by Python");
  if (!names.pieces.empty() && fs::exists(pieces)) {
    std::optional<TextRules> rules;
    if (names.changes_texts)
      rules = {flag(settings, "do_lower_case", true), flag(settings, "keep_accents", false)};
    const PieceFiles files{
        .model = pieces,
        .first = names.first_pieces,
        .replaced = names.replaced_pieces,
        .last = last_tokens(settings, names),
        .prefix_space = flag(settings, "add_prefix_space", true),
        .rules = rules,
        .like_bert = names.pieces_like_bert,
        .lowercase = flag(settings, "do_lower_case", false),
        .keeps_spaces = settings.languages != nullptr && settings.languages->keeps_spaces,
        .tokens = std::move(tokens)};
    return tokenizer_json(read_file(pieces, maximum_vocabulary_bytes), files).dump();
  }
  fail(
      "{}: holds neither tokenizer.json nor older files, which are vocab.txt, vocab.json and "
      "merges.txt{}; write the first by Python: "
      "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers",
      folder, names.pieces.empty() ? "" : ", or " + names.pieces);
}

}  // namespace attend::internal
