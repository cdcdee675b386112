#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/tokenizers/normaliser-inl.h"
#include "attend/tokenizers/trie-inl.h"

namespace attend::internal {

// A token that is found in a text before the text is split.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // not beside a letter, digit, mark or underscore
  bool strip_left = false;   // takes the white space in front of it along
  bool strip_right = false;
  bool normalised = false;   // is searched in the normalised text, itself normalised
  bool special = false;      // is left out of decoded texts, unless the normaliser changes it
  std::string written = {};  // what it is decoded as: the text that is searched for
};

// Tokens that are searched in one text: the leftmost, of several the longest.
class TokenSearch {
 public:
  TokenSearch() = default;
  // The texts to search for, each with its token. Of equal texts the first counts.
  TokenSearch(std::vector<std::string> texts, std::vector<AddedToken> tokens);

  // Calls on_text(text) for the text between tokens and on_token(id, text) for each token.
  template <class OnText, class OnToken>
  void split(std::string_view text, const OnText& on_text, const OnToken& on_token) const {
    size_t told = 0;  // bytes that are in a token or in a text
    for (size_t position = 0; position < text.size();) {
      position = skip(text, position);
      const auto [size, index] = longest(text.substr(position));
      if (size == 0) {
        position += std::min<size_t>(1, text.size() - position);
        continue;
      }
      const Place place = place_of(text, {position, position + size}, tokens_[index], told);
      position += size;
      if (place.end == 0) continue;
      if (told < place.begin) on_text(text.substr(told, place.begin - told));
      on_token(tokens_[index].id, text.substr(place.begin, place.end - place.begin));
      told = place.end;
    }
    if (told != text.size()) on_text(text.substr(told));
  }

 private:
  struct Place {
    size_t begin, end;  // end is 0 where there is none
  };

  // The next position at which a token may begin, or the end.
  size_t skip(std::string_view text, size_t position) const;
  // Size and index of the longest token at the front; size 0 where there is none.
  std::pair<size_t, size_t> longest(std::string_view text) const;
  static Place place_of(std::string_view text, Place place, const AddedToken& token, size_t told);

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_ = {};  // whether a text begins with that byte
  Trie trie_;
};

// The added tokens of a tokenizer: those of the text as it is, and those of the normalised text.
class AddedTokens {
 public:
  AddedTokens() = default;
  // With `splits_special`, texts are not searched for special tokens.
  AddedTokens(std::vector<AddedToken> tokens, const Normaliser* normaliser, bool splits_special);

  const std::vector<AddedToken>& list() const { return tokens_; }
  const AddedToken* find(int32_t id) const;
  const TokenSearch& in_raw() const { return in_raw_; }
  const TokenSearch& in_normalised() const { return in_normalised_; }

 private:
  std::vector<AddedToken> tokens_;  // by id
  TokenSearch in_raw_, in_normalised_;
};

}  // namespace attend::internal
