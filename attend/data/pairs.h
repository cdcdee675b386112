#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/units.h"

namespace attend {

// A source and every target that counts as right for it.
struct Example {
  std::string source;
  std::vector<std::string> targets;  // at least one
};

// Where pairs are: one file whose lines are source TAB target; or a CSV file with a header, where
// its name ends in .csv, .csv.gz or .csv.xz or columns are named; or, where `target` is given, two
// files of which line i and line i are a pair. Any of them may be packed by gzip or xz.
struct PairFiles {
  std::string source;
  std::string target = {};
  std::string source_column = {}, target_column = {};  // as CsvReader takes them

  bool is_csv() const;
};

struct PairOptions {
  int64_t maximum_line = 1 << 20;  // bytes
  // Whether lines of the same source become one example with several targets, in order of first
  // appearance, a repeated line counting once. Otherwise every line is an example.
  bool group = true;
  // Whether a pair of two files with an empty side is passed over; otherwise it is an Error.
  bool skip_empty = false;
};

// The pairs of files one at a time; texts come out in NFC. UTF-8, with or without a byte order
// mark; LF or CRLF. Errors name file and line: a missing file, no TAB, more than one TAB, a side
// that is empty or blank, invalid UTF-8, a NUL or a lone carriage return, a line over
// options.maximum_line bytes, two files of different lengths. ByteReader and CsvReader throw
// theirs.
class PairReader {
 public:
  explicit PairReader(const PairFiles& files, const PairOptions& options = {});
  ~PairReader();

  bool next(std::string& source, std::string& target);  // false at the end
  int64_t skipped() const { return skipped_; }          // pairs with an empty side

 private:
  struct Streams;
  bool next_line(std::string& source, std::string& target);
  bool next_row(std::string& source, std::string& target);
  bool next_of_two(std::string& source, std::string& target);

  std::unique_ptr<Streams> streams_;
  PairOptions options_;
  int64_t skipped_ = 0;
};

// All of them. Error also where there are none.
std::vector<Example> read_pairs(const PairFiles& file, const PairOptions& options = {});

struct ParallelText {
  std::vector<Example> examples;
  int64_t skipped = 0;  // pairs with an empty side
};
ParallelText read_parallel(const std::string& source_path, const std::string& target_path,
                           const PairOptions& options = {});

// read_pairs for the bytes of a file; `name` stands for it in messages.
std::vector<Example> parse_pairs(std::string_view bytes, const std::string& name,
                                 const PairOptions& options = {});

// A whole text in NFC, its lines ending with LF; packed by gzip or xz or not. Error, naming file
// and line, on an empty file, invalid UTF-8, a NUL or a lone carriage return.
std::string read_text(const std::string& path);
std::string parse_text(std::string_view bytes, const std::string& name);

}  // namespace attend
