#include "attend/text/fasta.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/text/line_reader.h"
#include "attend/text/lines.h"
#include "attend/text/units.h"

namespace attend {
namespace {

constexpr const char* suffixes[] = {".fasta", ".fas", ".fa",  ".fsa", ".faa",
                                    ".fna",   ".ffn", ".frn", ".mpfa"};

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
  const auto named = [&](const char* suffix) { return has_suffix(name, suffix); };
  return std::any_of(std::begin(suffixes), std::end(suffixes), named);
}

namespace {

// Collects the sequences of a file line by line.
class ResidueLines {
 public:
  ResidueLines(std::string name, const std::function<void(const std::string&)>& leave_out)
      : name_(std::move(name)), leave_out_(leave_out) {}

  void read(const internal::Lines& lines, std::string_view line) {
    if (line.starts_with('>')) {
      end_sequence();
      named_ = lines.where();
    } else if (!line.starts_with(';') && !is_bad_) {
      try {
        internal::at_line(lines, [&] { append_residues(line, sequence_); });
      } catch (const Error& error) {
        refuse(error.what());
      }
      if (named_.empty() && !sequence_.empty())
        refuse(fmt::format(
            "{}: residues before the first name; begin a sequence with a line such as >name",
            lines.where()));
    }
  }

  // Marks the sequence up to the next name as invalid.
  void refuse(const std::string& error) {
    if (is_bad_) return;
    is_bad_ = true;
    if (!leave_out_) fail("{}", error);
    leave_out_(error);
  }

  std::string end() {
    end_sequence();
    if (all_.empty()) fail("{}: holds no sequence; a line that begins with > names one", name_);
    return std::move(all_);
  }

 private:
  void end_sequence() {
    if (!named_.empty() && sequence_.empty())
      refuse(fmt::format("{}: names a sequence without residues", named_));
    if (!named_.empty() && !is_bad_) all_ += sequence_ + '\n';
    sequence_.clear();
    is_bad_ = false;
  }

  std::string name_;
  const std::function<void(const std::string&)>& leave_out_;
  std::string all_, sequence_;
  std::string named_;  // place of the sequence's name
  bool is_bad_ = false;
};

}  // namespace

std::string parse_fasta(std::string_view bytes, const std::string& name,
                        const std::function<void(const std::string& error)>& leave_out) {
  ResidueLines sequences(name, leave_out);
  internal::Lines lines(bytes, name, longest_line);
  std::string_view line;
  const auto next = [&] {
    try {
      return lines.next(line);
    } catch (const Error& error) {
      sequences.refuse(error.what());
      line = ";";  // an ignored line
      return true;
    }
  };
  while (next()) sequences.read(lines, line);
  return sequences.end();
}

}  // namespace attend
