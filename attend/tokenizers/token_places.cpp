#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/read_parts-inl.h"
#include "attend/tokenizers/sentence_piece_model-inl.h"
#include "attend/tokenizers/splitter-inl.h"
#include "attend/tokenizers/token_places-inl.h"

namespace attend::internal {
namespace {

// A normalised character and the part of the original that it comes from.
struct TracedCharacter {
  std::string text;
  size_t begin, end;
};

std::string_view front_bytes(std::string_view text) {
  const std::string_view character = front_character(text);
  return character.empty() ? text.substr(0, 1) : character;
}

void add_characters(std::string_view text, size_t begin, size_t end,
                    std::vector<TracedCharacter>& characters) {
  while (!text.empty()) {
    const std::string_view character = front_bytes(text);
    characters.push_back({std::string(character), begin, end});
    text.remove_prefix(character.size());
  }
}

// Normalises each character together with the marks after it.
std::vector<TracedCharacter> traced(std::string_view original, const Normaliser* normaliser) {
  std::vector<TracedCharacter> characters;
  for (size_t begin = 0, end = 0; begin < original.size(); begin = end) {
    end = begin + character_size(original[begin]);
    while (normaliser != nullptr && end < original.size() &&
           is(first_point(original.substr(end)), combining))
      end += character_size(original[end]);
    const std::string_view part = original.substr(begin, end - begin);
    std::string changed;
    if (normaliser != nullptr) normaliser->apply(part, changed);
    add_characters(normaliser != nullptr ? changed : part, begin, end, characters);
  }
  return characters;
}

// Returns the distance to the next occurrence of a character; `none` if it is not near.
template <class Characters>
size_t distance_to(const Characters& characters, size_t from, const std::string& wanted,
                   size_t none) {
  constexpr size_t near = 16;
  const size_t end = std::min(characters.size(), from + near);
  for (size_t i = from; i < end; ++i)
    if (characters[i].text == wanted) return i - from;
  return none;
}

// Returns the size of white space, or of its mark, at the start; 0 if there is none.
size_t blank_size(std::string_view text) {
  constexpr std::string_view mark = space_mark;
  if (text.starts_with(mark)) return mark.size();
  const std::string_view character = front_character(text);
  return !character.empty() && is(first_point(character), white_space) ? character.size() : 0;
}

size_t blanks_size(std::string_view text) {
  size_t size = 0;
  for (size_t blank; (blank = blank_size(text.substr(size))) > 0;) size += blank;
  return size;
}

// Returns the size of the token at the start of a text, or 0 if the text does not start with it.
// All white space is equivalent.
size_t size_at_front(std::string_view text, std::string_view token) {
  const size_t whole = text.size();
  while (!token.empty()) {
    const size_t blank = blank_size(token), other = blank_size(text);
    const bool is_blank = blank > 0 && other > 0;
    if (!is_blank && (text.empty() || text[0] != token[0])) return 0;
    token.remove_prefix(is_blank ? blank : 1);
    text.remove_prefix(is_blank ? other : 1);
  }
  return whole - text.size();
}

// Possible spellings in the text of a token without leading white space: unchanged, continuing a
// word, ending a word, or a byte.
std::vector<std::string> spellings(std::string_view token) {
  constexpr std::string_view prefix = continuation_prefix, suffix = "</w>";
  std::vector<std::string> all = {std::string(token)};
  if (token.size() > prefix.size() && token.starts_with(prefix))
    all.emplace_back(token.substr(prefix.size()));
  if (token.size() > suffix.size() && token.ends_with(suffix))
    all.emplace_back(token.substr(0, token.size() - suffix.size()));
  if (const auto byte = byte_of_piece(token)) all.emplace_back(1, static_cast<char>(*byte));
  return all;
}

// Finds the tokens of a part of a text one after another.
class PlaceFinder {
 public:
  PlaceFinder(const RewrittenText& text, size_t begin, size_t end)
      : text_(text), whole_(std::string_view(text.text).substr(0, end)), cursor_(begin) {}

  void add(std::string_view token) {
    const size_t leading = blanks_size(token);
    const size_t start = cursor_ + blanks_size(whole_.substr(cursor_));
    if (leading == token.size()) return add_blanks(token, start);
    const std::vector<std::string> all = spellings(token.substr(leading));
    const auto found = waiting_ == 0 ? found_at(start, all) : searched(start, leading > 0, all);
    if (!found) {
      ++waiting_;
      return;
    }
    settle(found->first);
    places_.push_back(text_.place(found->first, found->first + found->second));
    cursor_ = found->first + found->second;
  }

  std::vector<TokenSpan> take() {
    settle(whole_.size());
    return std::move(places_);
  }

 private:
  using Found = std::optional<std::pair<size_t, size_t>>;  // position and size in bytes

  // A token of only white space covers at most the white space that is there.
  void add_blanks(std::string_view token, size_t start) {
    size_t end = cursor_;
    while (!token.empty() && end < start) {
      token.remove_prefix(blank_size(token));
      end += blank_size(whole_.substr(end));
    }
    settle(cursor_);
    places_.push_back(text_.place(cursor_, end));
    cursor_ = end;
  }

  Found found_at(size_t position, const std::vector<std::string>& all) const {
    size_t size = 0;
    for (const std::string& each : all)
      size = std::max(size, size_at_front(whole_.substr(position), each));
    return size > 0 ? Found({position, size}) : std::nullopt;
  }

  // Searches after at least one character. Prefers the beginning of a word if `begins_word`.
  Found searched(size_t start, bool begins_word, const std::vector<std::string>& all) const {
    Found first;
    for (size_t i = start; i < whole_.size();) {
      const bool after_blank = blank_size(whole_.substr(i)) > 0;
      i += front_bytes(whole_.substr(i)).size();
      const Found found = i < whole_.size() ? found_at(i, all) : std::nullopt;
      if (found && (after_blank || !begins_word)) return found;
      if (found && !first) first = found;
    }
    return first;
  }

  // Distributes the words before `end` over the tokens that were not found.
  void settle(size_t end) {
    std::vector<std::pair<size_t, size_t>> words;
    for (size_t i = cursor_; waiting_ > 0 && i < end;) {
      i += blanks_size(whole_.substr(i, end - i));
      const size_t begin = i;
      while (i < end && blank_size(whole_.substr(i)) == 0)
        i += front_bytes(whole_.substr(i)).size();
      if (begin < i) words.emplace_back(begin, i);
    }
    for (size_t i = 0; i < waiting_; ++i) {
      if (i >= words.size()) {
        places_.emplace_back();
        continue;
      }
      const bool is_last = i + 1 == waiting_;
      places_.push_back(
          text_.place(words[i].first, is_last ? words.back().second : words[i].second));
    }
    waiting_ = 0;
  }

  const RewrittenText& text_;
  std::string_view whole_;
  size_t cursor_;
  size_t waiting_ = 0;  // tokens that were not found yet
  std::vector<TokenSpan> places_;
};

}  // namespace

TokenSpan RewrittenText::place(size_t begin, size_t end) const {
  if (begin >= end) return {};
  return {begins[begin], ends[end - 1]};
}

RewrittenText rewritten(std::string_view original, const Normaliser* normaliser) {
  RewrittenText result;
  if (normaliser != nullptr)
    normaliser->apply(original, result.text);
  else
    result.text = original;
  const std::vector<TracedCharacter> parts = traced(original, normaliser);
  std::vector<TracedCharacter> made;
  add_characters(result.text, 0, 0, made);
  size_t next = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    constexpr size_t none = std::string::npos;
    TracedCharacter& character = made[i];
    // Skips characters that only the separate normalisation has. A character that only the whole
    // text has gets an empty place.
    if (next < parts.size() && parts[next].text != character.text) {
      const size_t lost = distance_to(parts, next, character.text, none);
      const size_t got = distance_to(made, i, parts[next].text, none);
      if (lost != none && lost <= got)
        next += lost;
      else if (got != none) {
        character.begin = character.end = next == 0 ? 0 : parts[next - 1].end;
        continue;
      }
    }
    const size_t last = original.size();
    character.begin = next < parts.size() ? parts[next].begin : last;
    character.end = next < parts.size() ? parts[next].end : last;
    next = std::min(next + 1, parts.size());
  }
  for (const TracedCharacter& character : made) {
    result.begins.insert(result.begins.end(), character.text.size(), character.begin);
    result.ends.insert(result.ends.end(), character.text.size(), character.end);
  }
  return result;
}

std::vector<TokenSpan> places_of(const RewrittenText& text, size_t begin, size_t end,
                                 const std::vector<std::string>& tokens) {
  PlaceFinder finder(text, begin, end);
  for (const std::string& token : tokens) finder.add(token);
  return finder.take();
}

std::string spelled_bytes(std::string_view token) {
  std::string bytes;
  for (size_t position = 0; position < token.size();) {
    const size_t begin = position;
    const int byte = byte_spelled_by(next_point(token, position));
    if (byte >= 0)
      bytes += static_cast<char>(byte);
    else
      bytes += token.substr(begin, position - begin);
  }
  return bytes;
}

std::vector<std::string> whole_characters(const std::vector<std::string>& parts) {
  std::string whole;
  for (const std::string& part : parts) whole += part;
  std::vector<std::string> result;
  size_t begin = 0, position = 0;  // start of the part, and of the character with its first byte
  for (const std::string& part : parts) {
    const size_t end = begin + part.size();
    std::string characters, changed;
    while (position < end) {
      const std::string_view character = front_bytes(std::string_view(whole).substr(position));
      characters += character;
      if (position + character.size() > end) break;  // the next part shares it
      position += character.size();
    }
    result.emplace_back(well_formed(characters, changed));
    begin = end;
  }
  return result;
}

}  // namespace attend::internal
