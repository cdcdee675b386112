#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace attend {

// Returns whether a file contains sequences of residues or nucleotides, by its name, packed or not:
// .fasta, .fas, .fa, .fsa, .faa, .fna, .ffn, .frn or .mpfa.
bool is_fasta(std::string_view path);

// Returns the sequences of a FASTA file, one per line. In the file, a line that begins with > names
// a sequence, and the following lines contain its residues: letters, * and -. White space and lines
// that begin with ; are ignored. Errors name file and line: another character, residues before the
// first name, a name without residues, no sequence. If `leave_out` is set, it is called with the
// error of each unreadable sequence, which is then left out.
std::string parse_fasta(std::string_view bytes, const std::string& name,
                        const std::function<void(const std::string& error)>& leave_out = {});

}  // namespace attend
