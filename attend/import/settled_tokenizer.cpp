#include <algorithm>
#include <array>
#include <string_view>

#include "attend/import/foreign_tokenizer-inl.h"

namespace attend::internal {
namespace {

// Classes of transformers that use a tokenizer.json unchanged.
constexpr std::array<std::string_view, 3> plain_classes = {
    "PreTrainedTokenizerFast", "PreTrainedTokenizer", "TokenizersBackend"};

bool is_of_type(const Json& part, const char* type) {
  return part.is_object() && part.value("type", "") == type;
}

// Applies tokenizer_config.json to a tokenizer.json as transformers 4 and 5 do. Error, naming the
// key, if the two versions differ.
class SettledTokenizer {
 public:
  SettledTokenizer(Json& whole, const std::string& path, const TokenizerSettings& settings)
      : whole_(whole), path_(path), settings_(settings) {
    class_ = settings.config ? settings.config->place().text("tokenizer_class", "") : "";
    is_plain_ =
        std::find(plain_classes.begin(), plain_classes.end(), class_) != plain_classes.end();
  }

  void settle() {
    settle_words();
    settle_prefix_space();
    settle_truncation();
    settle_tokens();
    check_around();
    if (says("split_special_tokens") && place("split_special_tokens").value() == true)
      whole_[splits_special_key] = true;
  }

 private:
  bool says(const char* key) const {
    return settings_.config && settings_.config->place().has(key);
  }
  // Also true if the value is null.
  bool mentions(const char* key) const {
    return settings_.config && settings_.config->json.contains(key);
  }
  JsonPosition place(const char* key) const { return settings_.config->place().member(key); }
  bool flag(const char* key, bool otherwise) const {
    return settings_.config ? settings_.config->place().flag(key, otherwise) : otherwise;
  }

  [[noreturn]] void refuse(const char* key, const char* part) const {
    place(key).refuse(
        "is not what {} of {} says, and versions of transformers differ; make them alike", part,
        path_);
  }

  // BERT's classes have their own defaults.
  void settle_words() {
    if (!whole_.contains("normalizer") || is_plain_ || !settings_.config) return;
    Json& normaliser = whole_["normalizer"];
    if (!is_of_type(normaliser, "BertNormalizer")) return;
    const auto settle = [&](const char* here, const char* there, const Json& otherwise) {
      if (mentions(there) && !settings_.config->json[there].is_null())
        normaliser[here] = flag(there, true);
      else if (mentions(there) || !class_.empty())
        normaliser[here] = otherwise;
    };
    settle("lowercase", "do_lower_case", true);
    settle("handle_chinese_chars", "tokenize_chinese_chars", true);
    settle("strip_accents", "strip_accents", nullptr);
  }

  void settle_prefix_space() {
    constexpr const char* key = "add_prefix_space";
    if (!whole_.contains("pre_tokenizer") || !whole_["pre_tokenizer"].is_object()) return;
    Json& splitter = whole_["pre_tokenizer"];
    if (is_of_type(splitter, "ByteLevel")) {
      const bool here = JsonPosition(splitter, path_).flag(key, true);
      if (is_plain_ && says(key) && flag(key, here) != here) refuse(key, "pre_tokenizer");
      if (!is_plain_ && (says(key) || !class_.empty())) splitter[key] = flag(key, false);
      return;
    }
    if (!says(key) || is_plain_) return;
    for (const Json& part : splitter.value("pretokenizers", Json::array())) check_marks(part);
    check_marks(splitter);
  }

  void check_marks(const Json& splitter) const {
    if (!is_of_type(splitter, "Metaspace")) return;
    const bool is_marked = splitter.contains("prepend_scheme")
                               ? splitter["prepend_scheme"] != "never"
                               : JsonPosition(splitter, path_).flag("add_prefix_space", true);
    if (flag("add_prefix_space", is_marked) != is_marked)
      refuse("add_prefix_space", "pre_tokenizer");
  }

  void settle_truncation() {
    constexpr const char* key = "truncation_side";
    constexpr std::string_view left = "left", right = "right";
    if (!says(key)) return;
    const std::string side = place(key).text();
    if (side != left && side != right)
      place(key).refuse("is {}, not left or right", in_quotes(side));
    const bool is_there = whole_.contains("truncation") && whole_["truncation"].is_object();
    if (!is_there && side == right) return;
    // The model's configuration sets the actual length.
    if (!is_there)
      whole_["truncation"] = {{"max_length", 512}, {"strategy", "LongestFirst"}, {"stride", 0}};
    whole_["truncation"]["direction"] = side == left ? "Left" : "Right";
  }

  std::optional<int64_t> id_in_vocabulary(const std::string& content) const {
    const Json& vocabulary = whole_.at("model").at("vocab");
    if (vocabulary.is_object() && vocabulary.contains(content))
      return vocabulary[content].get<int64_t>();
    for (size_t id = 0; vocabulary.is_array() && id < vocabulary.size(); ++id)
      if (vocabulary[id].is_array() && !vocabulary[id].empty() && vocabulary[id][0] == content)
        return static_cast<int64_t>(id);
    return std::nullopt;
  }

  // Flags of added_tokens_decoder win. Missing tokens are added with their ids.
  void settle_tokens() {
    if (!whole_.contains("model")) return;
    if (!whole_.contains("added_tokens") || !whole_["added_tokens"].is_array())
      whole_["added_tokens"] = Json::array();
    Json& added = whole_["added_tokens"];
    const Json before = added;
    const auto find = [&](const std::string& content) {
      return std::find_if(added.begin(), added.end(), [&](const Json& token) {
        return token.is_object() && token.value("content", "") == content;
      });
    };
    for (Json token : described_tokens(settings_)) {
      const auto found = find(token["content"].get<std::string>());
      if (found == added.end()) continue;
      token["id"] = found->at("id");
      found->update(token);
    }
    for (Json token : named_tokens(settings_)) {
      const std::string content = token["content"];
      if (find(content) != added.end()) continue;
      if (const auto id = id_in_vocabulary(content)) token["id"] = *id;
      // Tokens without an id have no row in the model's tables.
      if (token.contains("id")) added.push_back(token);
    }
    if (added == before) return;
    std::stable_sort(added.begin(), added.end(), [](const Json& one, const Json& other) {
      return one.value("id", int64_t{0}) < other.value("id", int64_t{0});
    });
  }

  void check_around() const {
    // Languages replace the tokens around texts.
    if (is_plain_ || settings_.languages != nullptr || !whole_.contains("post_processor")) return;
    const auto [begin, end] = tokens_around(whole_["post_processor"]);
    for (const auto& [key, token] : {std::pair{"cls_token", begin}, {"sep_token", end}}) {
      const auto said = special_place(settings_, key);
      if (said && !token.empty() && said->text() != token)
        said->refuse("is {}, and the post_processor of {} has {}; make them alike",
                     in_quotes(said->text()), path_, in_quotes(token));
    }
  }

  Json& whole_;
  const std::string& path_;
  const TokenizerSettings& settings_;
  std::string class_;
  bool is_plain_ = false;
};

bool has_lowercase(const Json& normaliser) {
  if (!normaliser.is_object()) return false;
  for (const Json& part : normaliser.value("normalizers", Json::array()))
    if (has_lowercase(part)) return true;
  if (is_of_type(normaliser, "BertNormalizer")) return normaliser.value("lowercase", true);
  return is_of_type(normaliser, "Lowercase");
}

// Adds conversion to lower case as the first step.
void add_lowercase(Json& whole) {
  const Json before = whole.value("normalizer", Json());
  if (has_lowercase(before)) return;
  Json parts = Json::array({{{"type", "Lowercase"}}});
  if (before.is_object() && before.contains("normalizers"))
    parts.insert(parts.end(), before["normalizers"].begin(), before["normalizers"].end());
  else if (!before.is_null())
    parts.push_back(before);
  whole["normalizer"] = {{"type", "Sequence"}, {"normalizers", parts}};
}

}  // namespace

std::pair<std::string, std::string> tokens_around(const Json& post_processor) {
  std::pair<std::string, std::string> result;
  if (!post_processor.is_object()) return result;
  for (const Json& each : post_processor.value("processors", Json::array()))
    if (auto found = tokens_around(each); !found.first.empty()) return found;
  if (post_processor.contains("cls") && post_processor.contains("sep"))
    return {post_processor["cls"].at(0).get<std::string>(),
            post_processor["sep"].at(0).get<std::string>()};
  bool is_before = true;
  for (const Json& each : post_processor.value("single", Json::array())) {
    if (!each.contains("SpecialToken"))
      is_before = false;
    else
      (is_before ? result.first : result.second) = each["SpecialToken"].value("id", "");
  }
  return result;
}

std::string settled_tokenizer(std::string bytes, const std::string& path,
                              const TokenizerSettings& settings) {
  const Json before = parse_json(bytes, path);
  if (!before.is_object()) return bytes;
  Json whole = before;
  try {
    SettledTokenizer(whole, path, settings).settle();
    if (settings.lowercase) add_lowercase(whole);
  } catch (const Json::exception&) {
    // A part of another type; the reader of the tokenizer reports it.
    return bytes;
  }
  return whole == before ? bytes : whole.dump();
}

std::optional<int64_t> longest_text(const TokenizerSettings& settings) {
  constexpr const char* key = "model_max_length";
  if (!settings.config || !settings.config->place().has(key)) return std::nullopt;
  const JsonPosition place = settings.config->place().member(key);
  const double length = settings.config->place().real(key, 0);
  if (!(length >= 1)) place.refuse("is {}; set 1 or more", place.value().dump());
  // No limit is written as 10^30.
  constexpr double limit = 1 << 30;
  return static_cast<int64_t>(std::min(length, limit));
}

}  // namespace attend::internal
