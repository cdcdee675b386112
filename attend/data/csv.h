#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attend/data/compressed.h"

namespace attend {

// The rows of a CSV file with a header (RFC 4180): fields between commas, in quotes where they
// hold commas or line breaks, or begin with a quote, and each quote in them is then written twice.
// A quote in another field, such as 5" pipe, is a character. A line break in a field becomes a
// space.
class CsvReader {
 public:
  // Error, naming the file, on no header and on one that other characters than commas separate.
  CsvReader(ByteReader bytes, int64_t maximum_line);
  // Reads two columns by their names in the header; where both are empty, the header must have two.
  // Errors also on no such column, two columns of that name and the same column twice.
  CsvReader(ByteReader bytes, const std::string& source_column, const std::string& target_column,
            int64_t maximum_line);
  ~CsvReader();

  // The next row's fields, unchanged; false at the end. Errors name file and line: a row of another
  // number of fields than the header, quotes that do not pair, a NUL byte, a row of over
  // maximum_line bytes.
  bool next(std::vector<std::string>& fields);
  // The same of the two columns.
  bool next(std::string& source, std::string& target);

  const std::vector<std::string>& header() const;
  // Returns the index of a column in the header. Error if not exactly one has that name.
  size_t column(const std::string& name) const;

  std::string where() const;  // "pairs.csv:17", where that row begins
  int64_t line() const;       // 17
  // Whether reading can continue after an Error: not behind a NUL, quotes that do not pair, and a
  // row of several lines that has text after a closing quote or is too long.
  bool goes_on() const;
  // The names that the header gives to both columns.
  std::vector<std::string> columns() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
