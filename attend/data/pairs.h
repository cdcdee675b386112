#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/line_reader.h"
#include "attend/data/units.h"

namespace attend {

// A source and every target that counts as right for it.
struct Example {
  std::string source;
  std::vector<std::string> targets;  // at least one
  int64_t line = 0;                  // of its file, from 1; of merged ones the first; 0: of none
};

// An Error where a source or a target is none that can be learned from.
using PairCheck = std::function<void(const std::string& source, const std::string& target)>;

// Takes a remark for the user on the data.
using Tell = std::function<void(const std::string& remark)>;

// Where pairs are: one file whose lines are source TAB target; or a file in columns as CoNLL's,
// where its name ends in .conll or .conllu; or a CSV file with a header, where its name ends in
// .csv or columns are named; or, with a `target`, two files in which lines of the same number are a
// pair. Any of them may be packed by gzip or xz, and its name then ends in .gz or .xz.
struct PairFiles {
  std::string source;
  std::string target = {};
  std::string source_column = {}, target_column = {};  // as ConllReader and CsvReader take them
  PairCheck check = {};
  // Where set, a line that cannot be read is left out, and its error is told to it; a file that
  // cannot be read is an Error all the same.
  Tell leave_out = {};

  bool is_conll() const;
  bool is_csv() const;
};

// The pairs of files one at a time, unchanged. UTF-8, with or without a byte order mark; LF or
// CRLF. In two files, pairs with an empty or blank side are skipped. Errors name file and line: a
// missing file, no TAB, more than one TAB, a side that is empty or blank, invalid UTF-8, a NUL or a
// lone carriage return, a line over `maximum_line` bytes, two files of different lengths.
// Further errors are those of ByteReader, ConllReader and CsvReader, and of PairFiles::check,
// behind file and line. PairFiles::leave_out takes those of lines.
class PairReader {
 public:
  explicit PairReader(const PairFiles& files, int64_t maximum_line = longest_line);
  ~PairReader();

  bool next(std::string& source, std::string& target);  // false at the end
  // The line, or row of CSV, on which the pair reported last begins.
  int64_t line() const;
  // Remarks for the user on the part read so far, as "t.csv: ..": names taken from the first row of
  // a CSV file by default, words of a CoNLL-U file that hold blanks, pairs that were skipped.
  std::vector<std::string> remarks() const;

 private:
  struct Streams;
  bool next_checked(std::string& source, std::string& target);
  bool next_pair(std::string& source, std::string& target);
  // The number of lines, rows or pairs of lines, including the one reported last.
  int64_t lines_read() const;
  std::string where() const;  // "pairs.tsv:17", of what was read last
  bool next_line(std::string& source, std::string& target);
  bool next_sentence(std::string& source, std::string& target);
  bool next_row(std::string& source, std::string& target);
  bool next_of_two(std::string& source, std::string& target);

  std::unique_ptr<Streams> streams_;
  PairFiles files_;
  int64_t read_ = 0;     // rows or pairs of lines
  int64_t skipped_ = 0;  // pairs with an empty side
};

// Hands each pair to `take` as an example of its own, in their order. With `bad`, lines that cannot
// be read are told, left out and added to it; a file that cannot be read is an Error all the same.
void each_pair(PairFiles files, const std::function<void(Example&&)>& take, const Tell& tell = {},
               int64_t* bad = nullptr);

// each_pair, held in memory. Error also where there are none.
std::vector<Example> read_pairs(const PairFiles& files, const Tell& tell = {},
                                int64_t* bad = nullptr);

// read_pairs for the bytes of a file of lines; messages call it `name`.
std::vector<Example> parse_pairs(std::string_view bytes, const std::string& name,
                                 int64_t maximum_line = longest_line);

// The examples of one source, whose texts are equal in NFC, as one example with all their targets,
// in order of first appearance; a target appears there as often as it was.
std::vector<Example> merge_references(std::vector<Example> examples);

// What a figure over examples is over.
struct ExampleCounts {
  int64_t examples = 0, sources = 0, references = 0;  // sources: different ones
};
ExampleCounts count_examples(const std::vector<Example>& examples);

// A whole text, its lines ending with LF; packed by gzip or xz or not. A FASTA file, by its name
// (is_fasta), gives its sequences, one per line, as parse_fasta. Error, naming file and
// line, on an empty file, invalid UTF-8, a NUL or a lone carriage return. With `bad`, lines and
// sequences that cannot be read are told, left out and added to it.
std::string read_text(const std::string& path, const Tell& tell = {}, int64_t* bad = nullptr);
// The same of bytes; `leave_out` as PairFiles has it.
std::string parse_text(std::string_view bytes, const std::string& name, const Tell& leave_out = {});

}  // namespace attend
