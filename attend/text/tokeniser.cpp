#include "attend/text/tokeniser.h"

#include <vector>

#include "attend/text/characters.h"
#include "attend/text/units.h"

namespace attend {
namespace {

constexpr std::string_view mark = "\uFFED";
constexpr std::string_view escape = "\uFFEC";

enum class Kind { word, combining, other };

Kind kind_of(utf8proc_int32_t character) {
  switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::word;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return Kind::combining;
    default:
      return Kind::other;
  }
}

struct Token {
  std::string text;
  bool word;
};

// Returns the tokens of a text without white space.
std::vector<Token> split_tokens(std::string_view chunk) {
  std::vector<Token> tokens;
  while (!chunk.empty()) {
    utf8proc_int32_t character = 0;
    const std::string_view text = chunk.substr(0, internal::next_character(chunk, &character));
    chunk.remove_prefix(text.size());
    const Kind kind = kind_of(character);
    const bool joins_last =
        !tokens.empty() && (kind == Kind::combining || (kind == Kind::word && tokens.back().word));
    if (!joins_last) tokens.push_back({"", kind == Kind::word});
    std::string& token = tokens.back().text;
    if (text == mark || text == escape)
      token.append(escape).append(text == mark ? "1" : "0");
    else
      token += text;
  }
  return tokens;
}

void append_token(std::string& text, std::string_view token) {
  while (!token.empty()) {
    const size_t place = std::min(token.find(escape), token.size());
    text += token.substr(0, place);
    token.remove_prefix(place);
    if (token.empty()) return;
    token.remove_prefix(escape.size());
    const bool is_mark = token.starts_with('1');
    text += is_mark ? mark : escape;
    if (is_mark || token.starts_with('0')) token.remove_prefix(1);
  }
}

}  // namespace

std::string tokenise(std::string_view text) {
  internal::check_characters(text);
  std::string result;
  for (const std::string_view chunk : split_words(text)) {
    const std::vector<Token> tokens = split_tokens(chunk);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!result.empty()) result += ' ';
      if (i > 0 && !tokens[i].word) result += mark;
      result += tokens[i].text;
      if (i + 1 < tokens.size() && tokens[i + 1].word) result += mark;
    }
  }
  return result;
}

std::string undo_tokenise(std::string_view tokens) {
  std::string text;
  bool joined = true;  // to the next token
  for (std::string_view token : split_words(tokens)) {
    const bool joins_left = token.starts_with(mark);
    if (joins_left) token.remove_prefix(mark.size());
    if (!joined && !joins_left) text += ' ';
    joined = token.ends_with(mark) || (joins_left && token.empty());
    if (token.ends_with(mark)) token.remove_suffix(mark.size());
    append_token(text, token);
  }
  return text;
}

}  // namespace attend
