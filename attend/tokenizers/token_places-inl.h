#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/normaliser-inl.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend::internal {

// A normalised text with the origin of each byte in the original text.
struct RewrittenText {
  std::string text = {};
  std::vector<size_t> begins = {}, ends = {};  // per byte of text; non-decreasing

  // Returns the part of the original that the bytes `begin` to `end` of the text come from.
  TokenSpan place(size_t begin, size_t end) const;
};

// Applies the normaliser, if any, to a well-formed text. Each character is traced by normalising it
// separately, together with the combining marks after it.
RewrittenText rewritten(std::string_view original, const Normaliser* normaliser);

// Returns the places of the tokens of the bytes `begin` to `end` of a text. Each token is searched
// for at the end of the previous one, ignoring white space. A token that is not found there, such
// as an unknown one, gets the text up to the next token that is found.
std::vector<TokenSpan> places_of(const RewrittenText& text, size_t begin, size_t end,
                                 const std::vector<std::string>& tokens);

// Returns the bytes that the characters of a token represent (byte_spelling).
std::string spelled_bytes(std::string_view token);

// Returns for each part of a text the characters that share a byte with it; U+FFFD for malformed
// bytes.
std::vector<std::string> whole_characters(const std::vector<std::string>& parts);

}  // namespace attend::internal
