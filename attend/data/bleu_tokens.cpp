#include <algorithm>

#include "attend/data/bleu.h"
#include "attend/data/scored_text-inl.h"

namespace attend {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

// All of ASCII but letters, digits, controls and ' , - .
bool stands_alone(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return c >= ' ' && c <= '~' && !letter && !is_digit(c) && c != '\'' && !is_stop(c) && c != '-';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Rewrites each two bytes that `matches` takes, read from the left, to `write`'s text for them.
// Bytes will do for characters: what the rules name is ASCII.
template <class Matches, class Write>
std::string rewrite_pairs(const std::string& text, const Matches& matches, const Write& write) {
  std::string result;
  result.reserve(2 * text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      write(result, text[i], text[i + 1]);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

// The rules of mteval-v13a, in their order; each reads what the one before it wrote.
std::string tokenise_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  std::replace(text.begin(), text.end(), '\n', ' ');
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::string spaced = " ";
  for (const char c : text) {
    if (stands_alone(c))
      spaced.append({' ', c, ' '});
    else
      spaced += c;
  }
  spaced += ' ';
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return !is_digit(a) && is_stop(b); },
      [](std::string& out, char a, char b) {
        out.append({a, ' ', b, ' '});
      });
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return is_stop(a) && !is_digit(b); },
      [](std::string& out, char a, char b) {
        out.append({' ', a, ' ', b});
      });
  return rewrite_pairs(
      spaced, [](char a, char b) { return is_digit(a) && b == '-'; },
      [](std::string& out, char a, char b) {
        out.append({a, ' ', b, ' '});
      });
}

}  // namespace

std::vector<std::string> bleu_tokens(std::string_view text, const std::string& tokenise) {
  if (tokenise == "13a") return internal::words_of(tokenise_13a(text));
  std::vector<std::string> words = internal::words_of(text);
  if (tokenise == "none") return words;
  std::vector<std::string> characters;
  characters.reserve(text.size());
  for (const std::string& word : words)
    for (std::string& character : internal::characters_of(word))
      characters.push_back(std::move(character));
  return characters;
}

}  // namespace attend
