#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// A file of rows with named columns. It gives the source and the target of each row; a source may
// be two columns, with a TAB between their texts.
class PairTable {
 public:
  virtual ~PairTable() = default;

  // Reads the next row; false at the end. Errors name file and line.
  virtual bool next(std::string& source, std::string& target) = 0;
  virtual std::string where() const = 0;  // "pairs.csv:17", the first line of that row
  virtual int64_t line() const = 0;       // 17
  // Returns whether reading can continue after an Error.
  virtual bool goes_on() const = 0;
  // Returns the names for sources and targets.
  virtual std::vector<std::string> columns() const = 0;
};

// Opens a table; a TAB separates the names of two columns of sources. The name of the file decides:
// JsonLinesReader if it ends in .jsonl, .ndjson or .json (before .gz or .xz), else CsvReader.
// Errors as these, and as ByteReader.
std::unique_ptr<PairTable> open_pair_table(const std::string& path,
                                           const std::string& source_column,
                                           const std::string& target_column, int64_t maximum_line);

// Splits the names of columns of sources at a TAB. Error, naming the file, on over two names, on
// equal names, and on the name of the column of targets.
std::vector<std::string> source_columns(const std::string& names, const std::string& target,
                                        const std::string& file);

// Returns whether open_pair_table reads a file with this name as lines of JSON.
bool names_json_lines(std::string_view path);

}  // namespace attend
