#pragma once

#include <string>
#include <string_view>

namespace attend {

// Whether a file holds sequences of residues, by its name: .fasta, .fa or .faa, packed or not.
bool is_fasta(std::string_view path);

// Returns the sequences of a FASTA file, one per line. In the file a line that begins with > names
// a sequence, and the following lines hold its residues: letters, * and -. White space and lines
// that begin with ; are ignored. Errors name file and line: another character, residues before the
// first name, a name without residues, no sequence.
std::string parse_fasta(std::string_view bytes, const std::string& name);

}  // namespace attend
