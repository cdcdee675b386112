#include "attend/tokenizers/marian_tokenizer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "attend/base/trimmed.h"
#include "attend/tokenizers/read_parts-inl.h"

namespace attend {
namespace {

constexpr std::array special_tokens = {MarianTokenizer::end, MarianTokenizer::unknown,
                                       MarianTokenizer::padding};

bool is_special(std::string_view token) {
  return std::find(special_tokens.begin(), special_tokens.end(), token) != special_tokens.end();
}

// The size of the language at the front of a text; 0 where there is none.
size_t language_size(std::string_view text) {
  constexpr std::string_view opens = ">>", closes = "<<";
  const size_t close = text.starts_with(opens) ? text.find(closes) : text.npos;
  return close == text.npos ? 0 : close + closes.size();
}

// The first special token of a text; empty, and at its end, where there is none.
std::string_view first_special(std::string_view text) {
  for (size_t begin = text.find('<'); begin < text.size(); begin = text.find('<', begin + 1))
    for (const std::string_view token : special_tokens)
      if (text.substr(begin).starts_with(token)) return text.substr(begin, token.size());
  return text.substr(text.size());
}

// A piece of the other side has its mark of a space still.
std::string with_spaces(std::string text) {
  constexpr std::string_view mark = internal::space_mark;
  for (size_t place = text.find(mark); place != text.npos; place = text.find(mark, place + 1))
    text.replace(place, mark.size(), " ");
  return text;
}

}  // namespace

MarianTokenizer MarianTokenizer::parse(std::string_view bytes, const std::string& name) {
  return MarianTokenizer(SentencePiece::parse(bytes, name));
}

std::vector<std::string> MarianTokenizer::split(std::string_view text) const {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const std::string_view special = first_special(text);
    std::string_view before = text.substr(0, static_cast<size_t>(special.data() - text.data()));
    const size_t language = language_size(before);
    if (language > 0) tokens.emplace_back(before.substr(0, language));
    for (std::string& piece : pieces_.split(before.substr(language)))
      tokens.push_back(std::move(piece));
    if (!special.empty()) tokens.emplace_back(special);
    text.remove_prefix(before.size() + special.size());
  }
  return tokens;
}

std::string MarianTokenizer::join(std::span<const std::string> tokens) const {
  std::vector<std::string> ordinary;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(ordinary),
               [](const std::string& token) { return !is_special(token); });
  return std::string(trimmed(with_spaces(pieces_.join(ordinary))));
}

std::vector<std::string> parse_vocabulary(std::string_view bytes, const std::string& name) {
  const Json json = parse_json(bytes, name);
  const internal::TokenTable table = internal::read_vocabulary({json, name});
  std::vector<std::string> tokens;
  tokens.reserve(static_cast<size_t>(table.size()));
  for (int32_t id = 0; id < table.size(); ++id) tokens.push_back(table.token(id));
  return tokens;
}

}  // namespace attend
