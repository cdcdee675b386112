#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/source_texts.h"
#include "attend/text/line_reader.h"
#include "attend/text/pair_table.h"
#include "attend/text/units.h"

namespace attend {

// A source and all its correct targets.
struct Example {
  std::string source;
  std::vector<std::string> targets;  // at least one
  int64_t line = 0;                  // number in its file, from 1; the first if merged; 0: no file
};

// Throws an Error if a source or a target cannot be learned from.
using PairCheck = std::function<void(const std::string& source, const std::string& target)>;

// Receives a remark on the data for the user.
using Tell = std::function<void(const std::string& remark)>;

// Files of pairs: one file of lines source TAB target; a file in CoNLL columns, if its name ends in
// .conll or .conllu; a table with a header (PairTable), if its name ends in .csv, .jsonl, .ndjson
// or .json or columns are named; or, with a `target`, two files (lines with equal numbers are
// pairs). Any file may be packed by gzip or xz; its name then ends in .gz or .xz.
struct PairFiles {
  std::string source;
  std::string target = {};
  // As in ConllReader and open_pair_table. Two columns of sources are pairs of texts.
  std::string source_column = {}, target_column = {};
  PairCheck check = {};
  // Whether a target may be empty, except in two files and in CoNLL columns.
  bool takes_empty_targets = false;
  // Whether sources are pairs of texts; a line of one file is then text TAB text TAB target.
  PairTexts pairs = PairTexts::never;
  // Whether a target of one file may continue with a TAB and a number (data/span_target.h).
  bool takes_starts = false;
  // If set, called with the error of each unreadable line, which is then left out. A file that
  // cannot be read is still an Error.
  Tell leave_out = {};

  bool is_conll() const;
  bool is_table() const;
};

// Opens files that are a table (PairFiles::is_table). Errors as open_pair_table; also if sources
// are two columns, and files.pairs is never.
std::unique_ptr<PairTable> open_table(const PairFiles& files, int64_t maximum_line);

// Error if a line of one file has too few or too many TABs for its form.
void check_tabs(std::string_view line, const PairFiles& files);

// Returns the place of the TAB before the target of a line of one file; npos without a TAB.
size_t target_tab(std::string_view line, const PairFiles& files);

// Reads the pairs of files one at a time, unchanged. UTF-8, with or without a byte order mark; LF
// or CRLF. In two files, pairs with an empty or blank side are skipped. Errors name file and line:
// a missing file; no TAB; more TABs than PairFiles::pairs allows; an empty or blank source; an
// empty or blank target unless PairFiles::takes_empty_targets; invalid UTF-8; a NUL or a lone
// carriage return; a line over `maximum_line` bytes; two files of different lengths. ByteReader,
// ConllReader and PairTable report further errors; the errors of PairFiles::check name file and
// line, too.
// PairFiles::leave_out receives the errors of lines.
class PairReader {
 public:
  explicit PairReader(const PairFiles& files, int64_t maximum_line = longest_line);
  ~PairReader();

  bool next(std::string& source, std::string& target);  // false at the end
  // First line, or row of a table, of the pair that was returned last.
  int64_t line() const;
  // Remarks for the user on the part read so far, such as "t.csv: ..": default names taken from the
  // first row of a CSV file, words of a CoNLL-U file with blanks, pairs that were skipped.
  std::vector<std::string> remarks() const;

 private:
  struct Streams;
  bool next_checked(std::string& source, std::string& target);
  bool next_pair(std::string& source, std::string& target);
  // Number of lines, rows or pairs of lines, including the one returned last.
  int64_t lines_read() const;
  std::string where() const;  // "pairs.tsv:17", of the last line read
  bool next_line(std::string& source, std::string& target);
  bool next_sentence(std::string& source, std::string& target);
  bool next_row(std::string& source, std::string& target);
  bool next_of_two(std::string& source, std::string& target);

  std::unique_ptr<Streams> streams_;
  PairFiles files_;
  int64_t read_ = 0;             // rows or pairs of lines
  int64_t skipped_ = 0;          // pairs with an empty side
  bool repeats_header_ = false;  // a target is the name of its column
};

// Calls `take` with each pair as a separate example, in order. With `bad`, unreadable lines are
// reported as remarks, left out and counted in `bad`; a file that cannot be read is still an Error.
void each_pair(PairFiles files, const std::function<void(Example&&)>& take, const Tell& tell = {},
               int64_t* bad = nullptr);

// Throws an Error: the file has no examples. The message says what a line must be.
[[noreturn]] void fail_empty(const PairFiles& files);

// Returns all examples of each_pair. Error also if there are none.
std::vector<Example> read_pairs(const PairFiles& files, const Tell& tell = {},
                                int64_t* bad = nullptr);

// Like read_pairs for the bytes of a file of lines; messages call it `name`.
std::vector<Example> parse_pairs(std::string_view bytes, const std::string& name,
                                 int64_t maximum_line = longest_line);

// Merges the examples that have equal sources in NFC to one example with all their targets, in
// order of first appearance. Repeated targets are kept.
std::vector<Example> merge_references(std::vector<Example> examples);

// Numbers that a statistic over examples is based on.
struct ExampleCounts {
  int64_t examples = 0, sources = 0, references = 0;  // sources: distinct ones
};
ExampleCounts count_examples(const std::vector<Example>& examples);

// Reads a whole text with LF line ends, packed by gzip or xz or not. A FASTA file, by its name
// (is_fasta), gives its sequences, one per line, as parse_fasta. Error, naming file and line, on an
// empty file, invalid UTF-8, a NUL or a lone carriage return. With `bad`, unreadable lines and
// sequences are reported as remarks, left out and counted in `bad`.
std::string read_text(const std::string& path, const Tell& tell = {}, int64_t* bad = nullptr);
// Like read_text for bytes; `leave_out` as in PairFiles.
std::string parse_text(std::string_view bytes, const std::string& name, const Tell& leave_out = {});

}  // namespace attend
