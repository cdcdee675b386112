#pragma once

#include <string>
#include <string_view>

#include "attend/base/enum_names.h"

namespace attend {

// Unicode's normal forms, in each of which equal texts have equal bytes: letters composed with
// their marks (C) or apart from them (D), or composed, and taken apart what only looks different
// (KC: ligatures, full-width letters, superscripts). `none` leaves texts as they are.
enum class NormalForm { nfc, nfd, nfkc, none };
inline EnumNames names_of(NormalForm) { return {"nfc", "nfd", "nfkc", "none"}; }

// The text in that form. Error on invalid UTF-8, naming the byte (counted from 1), and on more than
// 1000 combining marks in a row, whose ordering would take quadratic time.
std::string normalised(std::string_view text, NormalForm form);
inline std::string to_nfc(std::string_view text) { return normalised(text, NormalForm::nfc); }

// Each letter as its lower-case one, where there is a single one; in that form. Errors as
// normalised.
std::string to_lower(std::string_view text, NormalForm form = NormalForm::nfc);

}  // namespace attend
