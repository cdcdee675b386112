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

// A token that is searched for in a text before the text is split.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // no letter, digit, mark or underscore next to it
  bool strip_left = false;   // includes the white space before it
  bool strip_right = false;
  bool normalised = false;   // content is normalised and searched for in the normalised text
  bool special = false;      // omitted from decoded texts, unless the normaliser changes it
  std::string written = {};  // decoded text of the token, for which texts are searched
};

// Finds tokens in a text: the leftmost first, at each position the longest.
class TokenSearch {
 public:
  TokenSearch() = default;
  // `texts` are the strings to search for, one per token. Among equal strings the first counts.
  TokenSearch(std::vector<std::string> texts, std::vector<AddedToken> tokens);

  // Calls on_text(text) for each text between tokens and on_token(id, text) for each token.
  template <class OnText, class OnToken>
  void split(std::string_view text, const OnText& on_text, const OnToken& on_token) const {
    size_t passed = 0;  // bytes already passed to a callback
    for (size_t position = 0; position < text.size();) {
      position = skip(text, position);
      const auto [size, index] = longest(text.substr(position));
      if (size == 0) {
        position += std::min<size_t>(1, text.size() - position);
        continue;
      }
      const Match place = place_of(text, {position, position + size}, tokens_[index], passed);
      position += size;
      if (place.end == 0) continue;
      if (passed < place.begin) on_text(text.substr(passed, place.begin - passed));
      on_token(tokens_[index].id, text.substr(place.begin, place.end - place.begin));
      passed = place.end;
    }
    if (passed != text.size()) on_text(text.substr(passed));
  }

 private:
  struct Match {
    size_t begin, end;  // end is 0 without a match
  };

  // Returns the next position at which a token may begin, or the end.
  size_t skip(std::string_view text, size_t position) const;
  // Returns the size and index of the longest token at the start of `text`; size 0 if there is
  // none.
  std::pair<size_t, size_t> longest(std::string_view text) const;
  static Match place_of(std::string_view text, Match place, const AddedToken& token, size_t passed);

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_ = {};  // whether a searched string begins with that byte
  Trie trie_;
};

// The added tokens of a tokenizer: some are found in the original text, others in the normalised
// text.
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
  std::vector<AddedToken> tokens_;  // ordered by id
  TokenSearch in_raw_, in_normalised_;
};

}  // namespace attend::internal
