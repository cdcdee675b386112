#pragma once

#include <string>
#include <string_view>

#include "attend/base/enum_names.h"

namespace attend {

// Unicode normal forms, in which equivalent texts have equal bytes: letters composed with their
// marks (C), decomposed (D), or composed with compatibility variants replaced (KC: ligatures,
// full-width letters, superscripts). `none` leaves texts unchanged.
enum class NormalForm { nfc, nfd, nfkc, none };
inline EnumNames names_of(NormalForm) { return {"nfc", "nfd", "nfkc", "none"}; }

// Returns the text in that form. Error on invalid UTF-8, with the position of the byte (from 1),
// and on more than 1000 combining marks in a row, which would take quadratic time to order.
std::string normalised(std::string_view text, NormalForm form);
inline std::string to_nfc(std::string_view text) { return normalised(text, NormalForm::nfc); }

// Returns the text with each letter in lower case, if it has a single-letter lower case, in that
// form. Errors as normalised.
std::string to_lower(std::string_view text, NormalForm form = NormalForm::nfc);

}  // namespace attend
