#pragma once

#include <string>
#include <string_view>

namespace attend {

// Separates words and punctuation, with one space between tokens. A run of letters and digits is a
// token; any other character is a token by itself. Each includes the combining marks after it. Two
// tokens that were adjacent share a mark, U+FFED, which allows restoring the text. The token that
// is not a word has it on the side of the other; if neither is a word, the right token has it:
//   Don't stop!  ->  Don ￭'￭ t stop ￭!
// A U+FFED of the text is written U+FFEC 1, and a U+FFEC is written U+FFEC 0. Error on invalid
// UTF-8.
std::string tokenise(std::string_view text);

// Restores the text, except for white space: one space per run, none at the ends.
std::string undo_tokenise(std::string_view tokens);

}  // namespace attend
