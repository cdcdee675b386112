#pragma once

#include <string>
#include <string_view>

namespace attend {

// The text in Unicode's normal form C, in which equal texts have equal bytes. Error on invalid
// UTF-8, naming the byte (counted from 1), and on more than 1000 combining marks in a row, whose
// ordering would take quadratic time.
std::string to_nfc(std::string_view text);

// The same in form KC, which also takes apart what only looks different: ligatures, full-width
// letters, superscripts.
std::string to_nfkc(std::string_view text);

// Each letter as its lower-case one, where there is a single one; in NFC. Errors as to_nfc.
std::string to_lower(std::string_view text);

}  // namespace attend
