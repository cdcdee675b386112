#include "attend/data/fasta.h"

#include <algorithm>
#include <cstdint>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/data/line_reader.h"
#include "attend/data/lines-inl.h"
#include "attend/data/units.h"

namespace attend {
namespace {

bool is_residue(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '*' || c == '-';
}

void append_residues(std::string_view line, std::string& sequence) {
  internal::check_characters(line);
  for (const std::string_view word : split_words(line)) {
    const auto other = std::find_if_not(word.begin(), word.end(), is_residue);
    if (other != word.end())
      fail(
          "{} in a sequence; residues are letters, * or -, and a line that begins with > is a name",
          in_quotes(split_characters(word.substr(static_cast<size_t>(other - word.begin())))[0]));
    sequence += word;
  }
}

}  // namespace

bool is_fasta(std::string_view path) {
  const std::string_view name = without_packing(path);
  return has_suffix(name, ".fasta") || has_suffix(name, ".fa") || has_suffix(name, ".faa");
}

std::string parse_fasta(std::string_view bytes, const std::string& name) {
  std::string all, sequence;
  int64_t named = 0;  // the line of the sequence's name
  const auto end_sequence = [&] {
    if (named > 0 && sequence.empty())
      fail("{}:{}: names a sequence without residues", name, named);
    if (named > 0) all += sequence + '\n';
    sequence.clear();
  };
  internal::Lines lines(bytes, name, longest_line);
  std::string_view line;
  while (lines.next(line)) {
    if (line.starts_with('>')) {
      end_sequence();
      named = lines.number();
    } else if (!line.starts_with(';')) {
      internal::at_line(lines, [&] { append_residues(line, sequence); });
      if (named == 0 && !sequence.empty())
        fail("{}: residues before the first name; begin a sequence with a line such as >name",
             lines.where());
    }
  }
  end_sequence();
  if (all.empty()) fail("{}: holds no sequence; a line that begins with > names one", name);
  return all;
}

}  // namespace attend
