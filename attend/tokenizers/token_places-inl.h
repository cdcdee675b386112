#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/normaliser-inl.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend::internal {

// A normalised text, and which bytes of the original each of its bytes comes from.
struct RewrittenText {
  std::string text = {};
  std::vector<size_t> begins = {}, ends = {};  // for each byte of text; they never decrease

  // The part of the original that the bytes from `begin` to `end` of the text come from.
  TokenPlace place(size_t begin, size_t end) const;
};

// Applies the normaliser, if any, to a well-formed text. Characters are traced by normalising each
// by itself, with the combining marks after it.
RewrittenText rewritten(std::string_view original, const Normaliser* normaliser);

// The places of tokens that the bytes from `begin` to `end` of a text were split into. Each token
// is searched for where the one before it ends, white space aside; one that is not found there,
// such as an unknown one, has what is left for it before the next one that is found.
std::vector<TokenPlace> places_of(const RewrittenText& text, size_t begin, size_t end,
                                  const std::vector<std::string>& tokens);

// The bytes that the characters of a token spell (byte_spelling).
std::string spelled_bytes(std::string_view token);

// Of parts of one text the characters that each shares a byte with; U+FFFD for malformed bytes.
std::vector<std::string> whole_characters(const std::vector<std::string>& parts);

}  // namespace attend::internal
