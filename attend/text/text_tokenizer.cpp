#include "attend/text/text_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/settings.h"
#include "attend/base/suffix.h"
#include "attend/text/vocabulary.h"
#include "attend/tokenizers/marian_tokenizer.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend {
namespace {

constexpr int64_t maximum_tokenizer_file = int64_t{256} << 20;

const std::vector<std::string>& fixed_spellings() {
  static const std::vector<std::string> all = [] {
    const Vocabulary fixed;
    std::vector<std::string> spellings;
    for (int64_t id = 0; id < fixed.size(); ++id) spellings.push_back(fixed.token(id));
    return spellings;
  }();
  return all;
}

std::string in_brackets(std::string_view token) { return fmt::format("[{}]", token); }

}  // namespace

// A tokenizer of either kind and the contents of its file.
struct TextTokenizer::Parts {
  explicit Parts(std::string its_bytes) : bytes(std::move(its_bytes)) {}
  virtual ~Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  virtual int32_t size() const = 0;
  virtual std::string name(int32_t id) const = 0;  // requires an id below size()
  virtual std::vector<std::string> split(std::string_view text, bool special_tokens) const = 0;
  virtual SourceTokens split_pair(std::string_view first, std::string_view second) const = 0;
  virtual std::string join(const std::vector<std::string>& tokens) const = 0;
  virtual std::optional<int32_t> id(const std::string& name) const = 0;
  virtual std::vector<TokenSpan> places(std::string_view text) const = 0;
  virtual std::vector<TokenSpan> places(std::string_view first, std::string_view second) const = 0;
  virtual std::vector<std::string> texts(const std::vector<std::string>& names) const = 0;
  virtual TextMargins pair_margins() const = 0;
  virtual PairTypes pair_types() const = 0;
  virtual int64_t opening_tokens() const = 0;
  virtual int64_t closing_tokens() const = 0;
  virtual bool cuts_left() const = 0;
  virtual std::string unknown() const = 0;
  // As Tokenizer::languages(), with names of tokens in a Vocabulary, and language_place(). In
  // tokens without such a place the language comes first.
  virtual std::vector<LanguageToken> languages() const = 0;
  virtual std::optional<int64_t> language_place() const = 0;

  std::string bytes;
};

namespace {

class JsonParts final : public TextTokenizer::Parts {
 public:
  JsonParts(std::string its_bytes, const std::string& name)
      : Parts(std::move(its_bytes)),
        tokenizer_(Tokenizer::parse(bytes, name)),
        languages_(tokenizer_.languages()),
        language_place_(tokenizer_.language_place()) {
    for (int32_t id = 0; id < tokenizer_.size(); ++id) {
      names_.push_back(vocabulary_name(tokenizer_.token(id), id));
      ids_.emplace(names_.back(), id);
    }
    for (LanguageToken& each : languages_)
      each.token = names_[static_cast<size_t>(*tokenizer_.id(each.token))];
  }

  int32_t size() const override { return tokenizer_.size(); }
  std::string name(int32_t id) const override { return names_[static_cast<size_t>(id)]; }

  std::vector<std::string> split(std::string_view text, bool special_tokens) const override {
    const EncodeOptions whole = {.special_tokens = special_tokens,
                                 .maximum = std::numeric_limits<int64_t>::max()};
    return names_of(tokenizer_.encode(text, whole));
  }

  SourceTokens split_pair(std::string_view first, std::string_view second) const override {
    const Encoding encoding =
        tokenizer_.encode(first, second, {.maximum = std::numeric_limits<int64_t>::max()});
    return {names_of(encoding), encoding.second};
  }

  std::string join(const std::vector<std::string>& tokens) const override {
    std::vector<int32_t> ids;
    ids.reserve(tokens.size());
    for (const std::string& token : tokens)
      if (const auto found = ids_.find(token); found != ids_.end()) ids.push_back(found->second);
    return tokenizer_.decode(ids);
  }

  std::optional<int32_t> id(const std::string& name) const override {
    const auto found = ids_.find(name);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<TokenSpan> places(std::string_view text) const override {
    return tokenizer_.places(text);
  }
  std::vector<TokenSpan> places(std::string_view first, std::string_view second) const override {
    return tokenizer_.places(first, second);
  }

  // Consecutive tokens of the tokenizer may share characters.
  std::vector<std::string> texts(const std::vector<std::string>& names) const override {
    std::vector<std::string> result;
    std::vector<int32_t> row;
    const auto add_row = [&] {
      for (std::string& text : tokenizer_.texts(row)) result.push_back(std::move(text));
      row.clear();
    };
    for (const std::string& name : names) {
      if (const auto known = id(name)) {
        row.push_back(*known);
        continue;
      }
      add_row();
      result.push_back(name);
    }
    add_row();
    return result;
  }

  TextMargins pair_margins() const override { return tokenizer_.pair_margins(); }
  PairTypes pair_types() const override { return tokenizer_.pair_types(); }
  int64_t opening_tokens() const override { return tokenizer_.opening_tokens(); }
  int64_t closing_tokens() const override { return tokenizer_.closing_tokens(); }
  bool cuts_left() const override { return tokenizer_.cuts_left(); }
  std::string unknown() const override {
    const std::optional<int32_t> id = tokenizer_.unknown();
    return id ? name(*id) : "";
  }
  std::vector<LanguageToken> languages() const override { return languages_; }
  std::optional<int64_t> language_place() const override { return language_place_; }

 private:
  std::vector<std::string> names_of(const Encoding& encoding) const {
    std::vector<std::string> tokens;
    tokens.reserve(encoding.ids.size());
    for (const int32_t id : encoding.ids) tokens.push_back(name(id));
    return tokens;
  }

  Tokenizer tokenizer_;
  std::vector<LanguageToken> languages_;  // with names of tokens in a Vocabulary
  std::optional<int64_t> language_place_;
  std::vector<std::string> names_;  // by id
  std::unordered_map<std::string, int32_t> ids_;
};

class PieceParts final : public TextTokenizer::Parts {
 public:
  PieceParts(std::string its_bytes, const std::string& name)
      : Parts(std::move(its_bytes)), tokenizer_(MarianTokenizer::parse(bytes, name)) {
    for (const std::string& spelling : fixed_spellings())
      spellings_.emplace(in_brackets(spelling), spelling);
  }

  int32_t size() const override { return tokenizer_.pieces().size(); }
  std::string name(int32_t id) const override {
    return vocabulary_name(tokenizer_.pieces().piece(id), id);
  }

  std::vector<std::string> split(std::string_view text, bool special_tokens) const override {
    std::vector<std::string> tokens = tokenizer_.split(text);
    if (special_tokens) tokens.emplace_back(MarianTokenizer::end);
    for (std::string& token : tokens) token = vocabulary_name(token, -1);
    return tokens;
  }

  SourceTokens split_pair(std::string_view, std::string_view) const override { refuse_pairs(); }
  std::vector<TokenSpan> places(std::string_view, std::string_view) const override {
    refuse_pairs();
  }
  TextMargins pair_margins() const override { refuse_pairs(); }
  PairTypes pair_types() const override { return PairTypes::same; }

  std::string join(const std::vector<std::string>& tokens) const override {
    std::vector<std::string> spelled;
    spelled.reserve(tokens.size());
    for (const std::string& token : tokens) {
      const auto found = spellings_.find(token);
      spelled.push_back(found == spellings_.end() ? token : found->second);
    }
    return tokenizer_.join(spelled);
  }

  std::optional<int32_t> id(const std::string& /*name*/) const override { return std::nullopt; }

  std::vector<TokenSpan> places(std::string_view text) const override {
    std::vector<TokenSpan> all = tokenizer_.places(text);
    all.push_back({.is_added = true});
    return all;
  }

  std::vector<std::string> texts(const std::vector<std::string>& names) const override {
    return names;
  }

  int64_t opening_tokens() const override { return 0; }
  int64_t closing_tokens() const override { return 1; }
  bool cuts_left() const override { return false; }
  std::string unknown() const override {
    return vocabulary_name(std::string(MarianTokenizer::unknown), -1);
  }
  std::vector<LanguageToken> languages() const override { return tokenizer_.languages(); }
  std::optional<int64_t> language_place() const override { return std::nullopt; }

 private:
  [[noreturn]] static void refuse_pairs() {
    fail("the tokenizer is a .spm, which reads no pairs of texts; set data.pairs = never");
  }

  MarianTokenizer tokenizer_;
  std::unordered_map<std::string, std::string> spellings_;  // only of tokens with another name
};

[[noreturn]] void fail_language(const std::string& language,
                                const std::vector<std::string>& known) {
  constexpr size_t max_shown = 12;
  if (known.empty())
    fail("{} is asked for as a language, and the model's tokenizer has no languages; leave it out",
         in_quotes(language));
  if (const std::string meant = nearest(language, known); !meant.empty())
    fail("the model has no language {}; did you mean {}?", in_quotes(language), meant);
  const size_t shown = std::min(known.size(), max_shown);
  fail("the model has no language {}; there are {}{}", in_quotes(language),
       fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
       shown == known.size() ? "" : fmt::format(" and {} more", known.size() - shown));
}

}  // namespace

TextTokenizer TextTokenizer::load(const std::string& path) {
  return parse(read_file(path, maximum_tokenizer_file), path);
}

TextTokenizer TextTokenizer::parse(std::string bytes, const std::string& name) {
  if (holds_pieces(name))
    return TextTokenizer(std::make_shared<const PieceParts>(std::move(bytes), name));
  return TextTokenizer(std::make_shared<const JsonParts>(std::move(bytes), name));
}

void TextTokenizer::save(const std::string& path) const { write_file(path, parts_->bytes); }

TextTokenizer TextTokenizer::without_special_tokens() const {
  TextTokenizer without = *this;
  without.special_tokens_ = false;
  return without;
}

int32_t TextTokenizer::size() const { return parts_->size(); }

std::string TextTokenizer::name(int32_t id) const {
  return id >= 0 && id < size() ? parts_->name(id) : name_by_id(id);
}

std::vector<std::string> TextTokenizer::languages() const {
  std::vector<std::string> names;
  for (const LanguageToken& each : parts_->languages()) names.push_back(each.language);
  return names;
}

TextTokenizer TextTokenizer::in_language(const std::string& language) const {
  for (const LanguageToken& each : parts_->languages()) {
    if (each.language != language) continue;
    TextTokenizer result = *this;
    result.language_token_ = each.token;
    return result;
  }
  fail_language(language, languages());
}

// Whether the language token is put before the other tokens, not in the place of another one.
bool TextTokenizer::puts_language_first() const {
  const bool has_place = special_tokens_ && parts_->language_place();
  return !language_token_.empty() && !has_place;
}

std::vector<std::string> TextTokenizer::split(std::string_view text) const {
  if (text.empty()) return {};
  std::vector<std::string> tokens = parts_->split(text, special_tokens_);
  if (puts_language_first()) {
    tokens.insert(tokens.begin(), language_token_);
  } else if (!language_token_.empty()) {
    const int64_t place = *parts_->language_place();
    tokens.at(static_cast<size_t>(place < 0 ? std::ssize(tokens) + place : place)) =
        language_token_;
  } else if (!special_tokens_ && !parts_->languages().empty()) {
    fail(
        "the language of a text is not known, one of {}; set data.target_language, or name it by "
        "--to",
        parts_->languages().size());
  }
  return tokens;
}

SourceTokens TextTokenizer::split(std::string_view first, std::string_view second) const {
  return parts_->split_pair(first, second);
}

std::vector<TokenSpan> TextTokenizer::places(std::string_view first,
                                             std::string_view second) const {
  return parts_->places(first, second);
}

TextMargins TextTokenizer::pair_margins() const { return parts_->pair_margins(); }

PairTypes TextTokenizer::pair_types() const { return parts_->pair_types(); }

std::vector<TokenSpan> TextTokenizer::places(std::string_view text) const {
  if (text.empty()) return {};
  std::vector<TokenSpan> all = parts_->places(text);
  if (!special_tokens_) std::erase_if(all, [](const TokenSpan& place) { return place.is_added; });
  if (puts_language_first()) all.insert(all.begin(), {.is_added = true});
  return all;
}

std::vector<std::string> TextTokenizer::texts(const std::vector<std::string>& names) const {
  return parts_->texts(names);
}

std::optional<int32_t> TextTokenizer::id(const std::string& name) const { return parts_->id(name); }

bool TextTokenizer::cuts_left() const { return parts_->cuts_left(); }

int64_t TextTokenizer::opening_tokens() const {
  return (special_tokens_ ? parts_->opening_tokens() : 0) + (puts_language_first() ? 1 : 0);
}

std::string TextTokenizer::join(const std::vector<std::string>& tokens) const {
  return parts_->join(tokens);
}

std::string TextTokenizer::unknown() const { return parts_->unknown(); }

int64_t TextTokenizer::closing_tokens() const {
  return special_tokens_ ? parts_->closing_tokens() : 0;
}

std::string vocabulary_name(const std::string& token, int32_t id) {
  for (const std::string& spelling : fixed_spellings())
    if (token == spelling) return in_brackets(token);
  const bool breaks = token.find_first_of(std::string_view("\0\r\n", 3)) != std::string::npos;
  return token.empty() || breaks ? name_by_id(id) : token;
}

std::string name_by_id(int32_t id) { return fmt::format("<token:{}>", id); }

bool holds_pieces(std::string_view path) { return has_suffix(path, ".spm"); }

}  // namespace attend
