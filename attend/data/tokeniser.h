#pragma once

#include <string>
#include <string_view>

namespace attend {

// Words and punctuation apart, with one space between any two tokens: a run of letters and digits
// is a token, any other character one by itself, with the combining marks behind it. Where there
// was no space, the token that is no word (the right one of two such) has the mark U+FFED on that
// side, so that the text can be restored:
//   Don't stop!  ->  Don ￭'￭ t stop ￭!
// A U+FFED of the text is written U+FFEC 1 and a U+FFEC U+FFEC 0. Error on invalid UTF-8.
std::string tokenise(std::string_view text);

// The text that was tokenised, but for its white space: one space for each run, none at the ends.
std::string undo_tokenise(std::string_view tokens);

}  // namespace attend
