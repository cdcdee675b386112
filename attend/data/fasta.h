#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace attend {

// Returns whether a file holds sequences of residues or nucleotides by its name, packed or not:
// .fasta, .fas, .fa, .fsa, .faa, .fna, .ffn, .frn or .mpfa.
bool is_fasta(std::string_view path);

// Returns the sequences of a FASTA file, one per line. In the file a line that begins with > names
// a sequence, and the following lines hold its residues: letters, * and -. White space and lines
// that begin with ; are ignored. Errors name file and line: another character, residues before the
// first name, a name without residues, no sequence. Where `leave_out` is set, a sequence that
// cannot be read is left out, and its error is told to it.
std::string parse_fasta(std::string_view bytes, const std::string& name,
                        const std::function<void(const std::string& error)>& leave_out = {});

}  // namespace attend
