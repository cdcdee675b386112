#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "attend/base/find_row.h"
#include "attend/metrics/bleu.h"
#include "attend/metrics/ngrams-inl.h"

namespace attend {
namespace {

using Words = std::vector<std::string>;

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

// All of ASCII except letters, digits, controls and ' , - .
bool is_separate(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return c >= ' ' && c <= '~' && !letter && !is_ascii_digit(c) && c != '\'' && !is_stop(c) &&
         c != '-';
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (size_t position; (position = text.find(from)) != std::string_view::npos;) {
    result.append(text.substr(0, position)).append(to);
    text.remove_prefix(position + from.size());
  }
  return result.append(text);
}

// Rewrites pairs of neighbours for which `matches` is true with `write`, from left to right.
template <class Text, class Matches, class Write>
Text rewrite_pairs(const Text& text, const Matches& matches, const Write& write) {
  Text result;
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

// Rules of mteval-v13a after its initial replacements, in its order; each rule reads the output of
// the previous one. Bytes suffice, because the rules name only ASCII.
Words tokenise_western(std::string_view text) {
  std::string spaced;
  for (const char c : text) {
    if (is_separate(c))
      spaced.append({' ', c, ' '});
    else
      spaced += c;
  }
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return !is_ascii_digit(a) && is_stop(b); },
      [](std::string& out, char a, char b) {
        out.append({a, ' ', b, ' '});
      });
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return is_stop(a) && !is_ascii_digit(b); },
      [](std::string& out, char a, char b) {
        out.append({' ', a, ' ', b});
      });
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return is_ascii_digit(a) && b == '-'; },
      [](std::string& out, char a, char b) {
        out.append({a, ' ', b, ' '});
      });
  return internal::words_of(spaced);
}

Words tokenise_13a(std::string_view line) {
  std::string text(line);
  for (const auto& [from, to] : {std::pair{"<skipped>", ""},
                                 {"-\n", ""},
                                 {"\n", " "},
                                 {"&quot;", "\""},
                                 {"&amp;", "&"},
                                 {"&lt;", "<"},
                                 {"&gt;", ">"}})
    text = replaced(text, from, to);
  return tokenise_western(' ' + text + ' ');
}

// First and last characters of sacreBLEU's blocks. Python reads sacreBLEU's five-digit escapes as
// four digits and another character; the first block, U+2001 to U+2A6D, results from this.
constexpr std::pair<char32_t, char32_t> chinese[] = {
    {0x2001, 0x2A6D}, {0x2E80, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F}, {0x31A0, 0x31EF},
    {0x3200, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9},
    {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};

// Removes trailing white space, as sacreBLEU does.
std::u32string to_code_points(std::string_view line) {
  std::u32string text = internal::code_points_of(line);
  while (!text.empty() && internal::is_white_space(text.back())) text.pop_back();
  return text;
}

Words tokenise_zh(std::string_view line) {
  std::u32string text = to_code_points(line), spaced;
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), internal::is_white_space));
  for (const char32_t c : text) {
    const bool is_chinese =
        std::any_of(std::begin(chinese), std::end(chinese),
                    [&](const auto& block) { return block.first <= c && c <= block.second; });
    if (is_chinese)
      spaced.append({U' ', c, U' '});
    else
      spaced += c;
  }
  return tokenise_western(internal::utf8_of(spaced));
}

bool is_number(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}
bool is_punctuation(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}
bool is_symbol(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
}

// International tokens of mteval-v14. A full stop after a number at the end stays attached.
Words tokenise_intl(std::string_view line) {
  std::u32string text = rewrite_pairs(
      to_code_points(line),
      [](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); },
      [](std::u32string& out, char32_t a, char32_t b) {
        out.append({a, U' ', b, U' '});
      });
  text = rewrite_pairs(
      text, [](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); },
      [](std::u32string& out, char32_t a, char32_t b) {
        out.append({U' ', a, U' ', b});
      });
  std::u32string spaced;
  for (const char32_t c : text) {
    if (is_symbol(c))
      spaced.append({U' ', c, U' '});
    else
      spaced += c;
  }
  return internal::words_of(internal::utf8_of(spaced));
}

Words tokenise_char(std::string_view line) {
  Words characters;
  characters.reserve(line.size());
  for (const std::string& word : internal::words_of(line))
    for (std::string& character : internal::characters_of(word))
      characters.push_back(std::move(character));
  return characters;
}

struct BleuTokeniser {
  std::string name;
  Words (*split)(std::string_view line);
};

const std::vector<BleuTokeniser>& tokeniser_table() {
  static const std::vector<BleuTokeniser> table = {{"13a", tokenise_13a},
                                                   {"intl", tokenise_intl},
                                                   {"zh", tokenise_zh},
                                                   {"char", tokenise_char},
                                                   {"none", internal::words_of}};
  return table;
}

}  // namespace

std::vector<std::string> bleu_tokenisers() {
  std::vector<std::string> names;
  for (const BleuTokeniser& row : tokeniser_table()) names.push_back(row.name);
  return names;
}

std::vector<std::string> bleu_tokens(std::string_view text, const std::string& tokenise) {
  return find_row(tokeniser_table(), "BLEU tokeniser", tokenise).split(text);
}

}  // namespace attend
