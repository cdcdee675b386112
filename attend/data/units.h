#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/data/normalise.h"

namespace attend {

// What one token of a sequence is: a character (a Unicode code point), a run of text between ASCII
// white space, the whole text without the white space around it, a byte of its UTF-8, or a symbol
// of a molecule (split_smiles). A byte is named by itself where it is printable ASCII, and "<0xC3>"
// otherwise.
enum class Units { character, space, line, byte, smiles };
inline EnumNames names_of(Units) { return {"char", "space", "line", "byte", "smiles"}; }

// Whether texts of those units are taken as they stand: neither lower-cased nor tokenised.
bool keeps_letters(Units units);

// Whether a text of UTF-8 may have no tokens of those units, which is an Error.
bool may_refuse(Units units);

// The tokens of a text in that normal form. Errors as normalised, and as split_smiles. Empty text
// gives no tokens, nor does white space as a line.
std::vector<std::string> split_units(std::string_view text, Units units,
                                     NormalForm form = NormalForm::nfc);

// The inverse of split_units: joined by nothing or by one space. Bytes that are no UTF-8 together
// become U+FFFD, a run of them at a time.
std::string join_units(const std::vector<std::string>& tokens, Units units);

// The names of all 256 bytes.
std::vector<std::string> byte_names();

// The code points of a text as it is. Error on invalid UTF-8.
std::vector<std::string> split_characters(std::string_view text);

// The runs of a text between ASCII white space, as it is.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace attend
