#include "attend/data/text_codec.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/label_target.h"
#include "attend/data/source_kind.h"
#include "attend/text/lines.h"
#include "attend/text/tokeniser.h"
#include "attend/tokenizers/marian_tokenizer.h"

namespace attend {
namespace {

// Smaller ids are fixed tokens, which other vocabularies lack.
constexpr int64_t first_outer = Vocabulary::unknown + 1;

// Error if the file named by data.KEY is missing.
void check_exists(const std::string& key, const std::string& path) {
  if (!std::filesystem::exists(path))
    fail("data.{} = {}: {}: no such file, neither here nor next to the settings file", key,
         in_quotes(path), path);
}

TextCodec make_codec(const TextConfig& text, const std::string& side, const std::string& units,
                     const std::string& own_codes, const std::optional<TextTokenizer>& tokenizer) {
  const bool pieces = units == piece_units;
  const bool by_tokenizer = units == tokenizer_units;
  const bool file = source_kind(units) != nullptr;
  TextCodec codec{.units = pieces                 ? Units::space
                           : file || by_tokenizer ? Units::line
                                                  : value_of<Units>(units, "unit")};
  codec.names_file = file;
  codec.form = by_tokenizer ? NormalForm::none : text.normalise;
  codec.lowercase = text.lowercase && !keeps_letters(codec.units);
  codec.tokenise = text.tokenise && !keeps_letters(codec.units);
  if (!own_codes.empty() && !pieces)
    fail("data.{}_bpe = {}: but data.{}_units is {}; set it to bpe", side, in_quotes(own_codes),
         side, in_quotes(units));
  if (by_tokenizer && !tokenizer)
    fail("data.{}_units = tokenizer: which? set data.tokenizer to a tokenizer.json", side);
  if (by_tokenizer) codec.tokenizer = tokenizer;
  if (!pieces) return codec;
  const std::string& path = own_codes.empty() ? text.bpe : own_codes;
  if (path.empty())
    fail("data.{}_units = bpe: which codes? set data.bpe to a file that attend data bpe train made",
         side);
  check_exists(own_codes.empty() ? "bpe" : side + "_bpe", path);
  codec.codes = BytePairEncoding::load(path);
  return codec;
}

// Error if a tokenizer is given but no side uses it.
void check_tokenizers(const TextConfig& text) {
  const bool is_for_target = text.target_units == tokenizer_units;
  if (!text.tokenizer.empty() && text.source_units != tokenizer_units && !is_for_target)
    fail(
        "data.tokenizer = {}: but neither data.source_units nor data.target_units is tokenizer; "
        "set them",
        in_quotes(text.tokenizer));
  if (!text.target_tokenizer.empty() && !is_for_target)
    fail("data.target_tokenizer = {}: but data.target_units is {}; set it to tokenizer",
         in_quotes(text.target_tokenizer), in_quotes(text.target_units));
}

}  // namespace

bool is_language_token(std::string_view token) {
  return token.size() > 2 && token.front() == '<' && token.back() == '>';
}

std::vector<std::string> TextCodec::split(std::string_view text) const {
  return pairs == PairTexts::never ? split_one(text) : split_source(text).names;
}

SourceTokens TextCodec::split_source(std::string_view text) const {
  const SourceTexts texts = source_texts(text, pairs);
  const std::string prompted = texts.second ? prompt + std::string(texts.first) : "";
  const std::string_view first = texts.second ? prompted : texts.first;
  if (texts.second && tokenizer) return tokenizer->split(prepared(first), prepared(*texts.second));
  SourceTokens tokens{split_one(first)};
  if (texts.second) tokens.names.emplace_back(pair_separator);
  tokens.second = std::ssize(tokens.names);
  if (texts.second)
    for (std::string& token : split_one(*texts.second)) tokens.names.push_back(std::move(token));
  return tokens;
}

TextCodec TextCodec::in_language(const std::string& language) const {
  if (language.empty()) return *this;
  if (!tokenizer)
    fail("{} is asked for as a language, and the model has no languages; leave it out",
         in_quotes(language));
  TextCodec codec = *this;
  codec.tokenizer = tokenizer->in_language(language);
  return codec;
}

TextCodec TextCodec::with_prompt(const std::string& other) const {
  if (pairs == PairTexts::never)
    fail(
        "a prompt precedes the first text of a pair, and data.pairs is never; write it into the "
        "text");
  TextCodec codec = *this;
  try {
    codec.prompt = other;
    (void)normalised(other, NormalForm::none);
  } catch (const Error& error) {
    fail("the prompt: {}", error.what());
  }
  return codec;
}

TextMargins TextCodec::margins(bool is_pair) const {
  if (is_pair) return tokenizer ? tokenizer->pair_margins() : TextMargins{.between = 1};
  if (!tokenizer) return {};
  return {.before = tokenizer->opening_tokens(), .after = tokenizer->closing_tokens()};
}

std::vector<std::string> TextCodec::split_one(std::string_view text) const {
  std::vector<std::string> tokens = split_text(text);
  if (!text.empty() && std::ssize(tokens) < fill_length)
    tokens.resize(static_cast<size_t>(fill_length), fill_token);
  return tokens;
}

std::vector<std::string> TextCodec::split_text(std::string_view text) const {
  if (!language_token) return split_rest(text);
  constexpr std::string_view spaces = " \t";
  const size_t begin = std::min(text.find_first_not_of(spaces), text.size());
  const size_t end = std::min(text.find_first_of(spaces, begin), text.size());
  const std::string token = normalised(text.substr(begin, end - begin), form);
  if (token.empty()) return {};
  if (!is_language_token(token))
    fail(
        "{} begins with no language; data.language_token = true needs a token such as <2de> and a "
        "space before each source",
        in_quotes(text));
  std::vector<std::string> tokens = {token};
  const size_t rest = std::min(text.find_first_not_of(spaces, end), text.size());
  for (std::string& token : split_rest(text.substr(rest))) tokens.push_back(std::move(token));
  return tokens;
}

std::string TextCodec::prepared(std::string_view text) const {
  std::string changed = normalised(text, form);
  if (lowercase) changed = to_lower(changed, form);
  return tokenise ? attend::tokenise(changed) : changed;
}

std::vector<std::string> TextCodec::split_rest(std::string_view text) const {
  const std::string changed = prepared(text);
  if (!label_separator.empty()) return split_labels(changed, label_separator);
  if (tokenizer) return tokenizer->split(changed);
  if (!codes) return split_units(changed, units, form);
  std::vector<std::string> pieces;
  for (const std::string_view word : split_words(changed))
    for (std::string& piece : codes->split(word)) pieces.push_back(std::move(piece));
  return pieces;
}

std::vector<std::string> TextCodec::split_lines(std::string_view text) const {
  if (tokenizer) return split(text);
  const std::vector<std::string> line_break =
      units == Units::byte ? split_units("\n", Units::byte) : std::vector<std::string>{"\n"};
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    for (std::string& token : split(text.substr(0, end))) tokens.push_back(std::move(token));
    text.remove_prefix(end);
    if (text.empty()) break;
    tokens.insert(tokens.end(), line_break.begin(), line_break.end());
    text.remove_prefix(1);
  }
  return tokens;
}

std::string TextCodec::join(const std::vector<std::string>& tokens) const {
  std::string text;
  for (auto begin = tokens.begin();;) {
    const auto end = std::find(begin, tokens.end(), "\n");
    text += join_line({begin, end});
    if (end == tokens.end()) return text;
    text += '\n';
    begin = end + 1;
  }
}

std::string TextCodec::join_line(const std::vector<std::string>& tokens) const {
  if (!label_separator.empty()) return fmt::format("{}", fmt::join(tokens, label_separator));
  if (tokenizer) return tokenizer->join(tokens);
  std::string text = join_units(tokens, units);
  if (codes) text = BytePairEncoding::undo(text);
  return tokenise ? undo_tokenise(text) : text;
}

std::vector<TokenSpan> TextCodec::places(std::string_view text) const {
  if (!tokenizer) return {};
  const SourceTexts texts = source_texts(text, pairs);
  if (!texts.second) {
    std::vector<TokenSpan> all = tokenizer->places(text);
    if (!text.empty() && std::ssize(all) < fill_length)
      all.resize(static_cast<size_t>(fill_length));
    return all;
  }
  std::vector<TokenSpan> all = tokenizer->places(prompt + std::string(texts.first), *texts.second);
  const auto begin = static_cast<size_t>(texts.second->data() - text.data());
  const auto first_of_second = static_cast<size_t>(split_source(text).second);
  for (size_t i = 0; i < std::min(first_of_second, all.size()); ++i) {
    all[i].begin = std::max(all[i].begin, prompt.size()) - prompt.size();
    all[i].end = std::max(all[i].end, prompt.size()) - prompt.size();
  }
  for (size_t i = first_of_second; i < all.size(); ++i)
    if (all[i].end > 0) all[i] = {all[i].begin + begin, all[i].end + begin};
  return all;
}

std::vector<std::string> TextCodec::texts(const std::vector<std::string>& tokens) const {
  return tokenizer ? tokenizer->texts(tokens) : tokens;
}

int64_t TextCodec::outer_id(const std::string& token, const Vocabulary& vocabulary) const {
  if (const auto id = tokenizer ? tokenizer->id(token) : std::nullopt) return *id;
  const int64_t id = vocabulary.id(token);
  if (!tokenizer) return id;
  if (id != Vocabulary::unknown) return id - first_outer;
  // the name of unknown tokens in vocab.json
  const int64_t unknown = vocabulary.id(vocabulary_name(std::string(MarianTokenizer::unknown), -1));
  return unknown == Vocabulary::unknown ? unknown : unknown - first_outer;
}

std::string TextCodec::token_of(int64_t outer_id, const Vocabulary& vocabulary) const {
  const int64_t shift = tokenizer ? first_outer : 0;
  const bool by_tokenizer = tokenizer && tokenizer->id(tokenizer->name(0)).has_value();
  const int64_t first = first_outer - shift;
  const int64_t last = by_tokenizer ? tokenizer->size() : vocabulary.size() - shift;
  if (outer_id < first || outer_id >= last)
    fail("token id {} does not exist; token ids of texts are {} to {}", outer_id, first, last - 1);
  return by_tokenizer ? tokenizer->name(static_cast<int32_t>(outer_id))
                      : vocabulary.token(outer_id + shift);
}

bool TextCodec::knows(const std::string& token, const Vocabulary& vocabulary) const {
  if (vocabulary.id(token) != Vocabulary::unknown) return true;
  const auto id = tokenizer ? tokenizer->id(token) : std::nullopt;
  return id && vocabulary.id(name_by_id(*id)) != Vocabulary::unknown;
}

std::vector<std::string> TextCodec::alphabet() const {
  if (units == Units::byte) return byte_names();
  return {};
}

TextCodecs make_codecs(const TextConfig& text) {
  if (!text.bpe.empty() && text.source_units != piece_units && text.target_units != piece_units)
    fail("data.bpe = {}: but neither data.source_units nor data.target_units is bpe; set them",
         in_quotes(text.bpe));
  if (text.language_token && text.source_kind() != nullptr)
    fail("data.language_token = true: but data.source_units is {}, and its sources are names",
         text.source_units);
  if (text.pairs != PairTexts::never && (text.language_token || text.source_kind() != nullptr))
    fail("data.pairs is {}, and {}; set data.pairs = never", name_of(text.pairs),
         text.language_token ? "data.language_token is true"
                             : "data.source_units is " + text.source_units);
  if (text.fill_length > 0 && (text.pairs != PairTexts::never || text.source_kind() != nullptr))
    fail("data.fill_length is {}, which is for sources of one text; leave it out",
         text.fill_length);
  check_tokenizers(text);
  std::optional<TextTokenizer> tokenizer, target_tokenizer;
  if (!text.tokenizer.empty()) {
    check_exists("tokenizer", text.tokenizer);
    target_tokenizer = tokenizer = TextTokenizer::load(text.tokenizer);
  }
  if (!text.target_tokenizer.empty()) {
    check_exists("target_tokenizer", text.target_tokenizer);
    target_tokenizer = TextTokenizer::load(text.target_tokenizer).without_special_tokens();
  }
  TextCodecs codecs{
      make_codec(text, "source", text.source_units, text.source_bpe, tokenizer),
      make_codec(text, "target", text.target_units, text.target_bpe, target_tokenizer)};
  codecs.source.language_token = text.language_token;
  codecs.source.pairs = text.pairs;
  codecs.source.fill_length = text.fill_length;
  if (const std::string prompt = text.text_prompts().text(); !prompt.empty())
    codecs.source = codecs.source.with_prompt(prompt);
  codecs.source = codecs.source.in_language(text.source_language);
  codecs.target = codecs.target.in_language(text.target_language);
  if (text.wants_labels()) codecs.target.label_separator = text.label_separator;
  return codecs;
}

TextConfig with_codes_in(const std::string& folder, TextConfig text) {
  // The names are fixed: a foreign configuration must not choose which files are read.
  if (!text.bpe.empty()) text.bpe = folder + "/bpe.codes";
  if (!text.source_bpe.empty()) text.source_bpe = folder + "/source.bpe";
  if (!text.target_bpe.empty()) text.target_bpe = folder + "/target.bpe";
  const auto named = [&](std::string& path, const char* pieces, const char* json) {
    if (!path.empty()) path = fmt::format("{}/{}", folder, holds_pieces(path) ? pieces : json);
  };
  named(text.tokenizer, "source.spm", "tokenizer.json");
  named(text.target_tokenizer, "target.spm", "target_tokenizer.json");
  return text;
}

void save_codes(const TextCodecs& codecs, const TextConfig& text, const std::string& folder) {
  const TextConfig stored = with_codes_in(folder, text);
  const auto save = [](const auto& splitter, const std::string& own, const std::string& both) {
    if (splitter) splitter->save(own.empty() ? both : own);
  };
  save(codecs.source.codes, stored.source_bpe, stored.bpe);
  save(codecs.target.codes, stored.target_bpe, stored.bpe);
  save(codecs.source.tokenizer, "", stored.tokenizer);
  save(codecs.target.tokenizer, stored.target_tokenizer, stored.tokenizer);
}

void count_tokens(const std::string& path, const TextCodec& codec, WordCounts& counts) {
  constexpr int64_t maximum_line = 1 << 20;
  internal::Lines lines(ByteReader(path), maximum_line);
  std::string_view line;
  while (lines.next(line))
    for (const std::string& token : internal::at_line(lines, [&] { return codec.split(line); }))
      ++counts[token];
}

}  // namespace attend
