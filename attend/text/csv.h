#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attend/files/compressed.h"
#include "attend/text/pair_table.h"

namespace attend {

// Reads a CSV file with a header (RFC 4180). Fields are separated by commas. Fields that contain
// commas or line breaks, or begin with a quote, are in quotes, with each inner quote doubled. In
// other fields, such as 5" pipe, a quote is an ordinary character. A line break in a field becomes
// a space. A first line "sep=," of a spreadsheet is skipped. In a file named .tsv, TABs separate
// fields, and quotes are ordinary characters.
class CsvReader : public PairTable {
 public:
  // Error, naming the file, if the header is missing or uses another separator than commas.
  CsvReader(ByteReader bytes, int64_t maximum_line);
  // Reads columns by their names in the header; `source_column` as for open_pair_table. If both
  // names are empty, the header must have two columns. Errors also if a column is missing, the name
  // of a column that is read is not unique, or two names are equal.
  CsvReader(ByteReader bytes, const std::string& source_column, const std::string& target_column,
            int64_t maximum_line);
  ~CsvReader() override;

  // Reads the fields of the next row, unchanged; false at the end. Errors name file and line: a row
  // with another number of fields than the header, unpaired quotes, a NUL byte, a row of over
  // maximum_line bytes.
  bool next(std::vector<std::string>& fields);
  // Reads the source and the target of the next row.
  bool next(std::string& source, std::string& target) override;

  const std::vector<std::string>& header() const;
  // Returns the index of a column in the header. Error if not exactly one has that name.
  size_t column(const std::string& name) const;

  std::string where() const override;
  int64_t line() const override;
  // Returns whether reading can continue after an Error: not after a NUL, unpaired quotes, or a
  // multi-line row that is too long or has text after a closing quote.
  bool goes_on() const override;
  std::vector<std::string> columns() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
