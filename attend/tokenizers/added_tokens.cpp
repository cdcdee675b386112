#include <utility>

#include "attend/tokenizers/added_tokens-inl.h"
#include "attend/tokenizers/characters-inl.h"

namespace attend::internal {
namespace {

size_t spaces_at_end(std::string_view text) {
  const size_t whole = text.size();
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!is(first_point(text.substr(last)), white_space)) break;
    text = text.substr(0, last);
  }
  return whole - text.size();
}

size_t spaces_at_front(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && is(first_point(text.substr(size)), white_space))
    size += character_size(text[size]);
  return size;
}

}  // namespace

TokenSearch::TokenSearch(std::vector<std::string> texts, std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)) {
  std::vector<Trie::Entry> entries;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    entries.emplace_back(texts[i], static_cast<int32_t>(i));
    begins_[static_cast<unsigned char>(texts[i][0])] = true;
  }
  trie_ = Trie(std::move(entries));
}

size_t TokenSearch::skip(std::string_view text, size_t position) const {
  while (position < text.size() && !begins_[static_cast<unsigned char>(text[position])]) ++position;
  return position;
}

std::pair<size_t, size_t> TokenSearch::longest(std::string_view text) const {
  std::pair<size_t, size_t> found{0, 0};
  trie_.for_each_prefix(text, [&](size_t size, int32_t index) {
    found = {size, static_cast<size_t>(index)};
  });
  return found;
}

TokenSearch::Match TokenSearch::place_of(std::string_view text, Match place,
                                         const AddedToken& token, size_t passed) {
  const std::string_view before = text.substr(0, place.begin);
  const std::string_view after = text.substr(place.end);
  if (token.single_word) {
    const bool word_before = !before.empty() && is(last_point(before), word_character);
    const bool word_after = !after.empty() && is(first_point(after), word_character);
    if (word_before || word_after) return {0, 0};
  }
  // White space that the previous token included belongs to that token.
  if (token.strip_left && passed < place.begin) place.begin -= spaces_at_end(before.substr(passed));
  if (token.strip_left) place.begin = std::max(passed, place.begin);
  if (token.strip_right) place.end += spaces_at_front(after);
  return place;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normaliser* normaliser,
                         bool splits_special)
    : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  std::vector<std::string> raw_texts, normalised_texts;
  std::vector<AddedToken> raw, normalised;
  for (AddedToken& token : tokens_) {
    if (token.normalised && normaliser != nullptr)
      normaliser->apply(token.content, token.written);
    else
      token.written = token.content;
    if (token.special && splits_special) continue;
    (token.normalised ? normalised_texts : raw_texts).push_back(token.written);
    (token.normalised ? normalised : raw).push_back(token);
  }
  in_raw_ = TokenSearch(std::move(raw_texts), std::move(raw));
  in_normalised_ = TokenSearch(std::move(normalised_texts), std::move(normalised));
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = std::lower_bound(tokens_.begin(), tokens_.end(), id,
                                      [](const AddedToken& t, int32_t i) { return t.id < i; });
  return found != tokens_.end() && found->id == id ? &*found : nullptr;
}

}  // namespace attend::internal
