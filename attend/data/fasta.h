#pragma once

#include <string>
#include <string_view>

namespace attend {

// Whether a file holds sequences of residues, by its name: .fasta, .fa or .faa, packed or not.
bool is_fasta(std::string_view path);

// The sequences of a file of the FASTA format, one per line: a line that begins with > names one,
// the lines behind it are its residues: letters, * and -. White space and lines that begin with ;
// are passed over. Errors name file and line: another character, residues before the first name, a
// name without residues, no sequence.
std::string parse_fasta(std::string_view bytes, const std::string& name);

}  // namespace attend
