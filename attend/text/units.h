#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/text/normalise.h"

namespace attend {

// Unit of one token:
// - character: a Unicode code point;
// - space: a run of text between ASCII white space;
// - line: the whole text without the white space around it;
// - byte: a byte of its UTF-8, named by itself if it is printable ASCII, otherwise as "<0xC3>";
// - smiles: a symbol of a molecule (split_smiles).
enum class Units { character, space, line, byte, smiles };
inline EnumNames names_of(Units) { return {"char", "space", "line", "byte", "smiles"}; }

// Returns whether texts of these units stay unchanged: neither lower-cased nor tokenised.
bool keeps_letters(Units units);

// Returns whether valid UTF-8 text may be invalid for these units, which is an Error.
bool may_refuse(Units units);

// Returns the tokens of a text in that normal form. Errors as normalised and split_smiles. An empty
// text has no tokens, nor does white space as a line.
std::vector<std::string> split_units(std::string_view text, Units units,
                                     NormalForm form = NormalForm::nfc);

// Inverse of split_units: joins without separator or with one space. Each run of bytes that is not
// UTF-8 becomes U+FFFD.
std::string join_units(const std::vector<std::string>& tokens, Units units);

// Names of all 256 bytes.
std::vector<std::string> byte_names();

// Returns the code points of a text, unchanged. Error on invalid UTF-8.
std::vector<std::string> split_characters(std::string_view text);

// Returns the runs of a text between ASCII white space, unchanged.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace attend
