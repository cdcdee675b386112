#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attend/files/compressed.h"
#include "attend/text/pair_table.h"

namespace attend {

// Reads JSON Lines: one object per line. It takes two members of each. Texts are unchanged, except
// that a line break or a TAB becomes a space; numbers and booleans are read as they are written in
// JSON. Blank lines are skipped.
class JsonLinesReader : public PairTable {
 public:
  // Error, naming the file, if a column is not named, or both names are equal.
  JsonLinesReader(ByteReader bytes, std::string source_column, std::string target_column,
                  int64_t maximum_line);
  ~JsonLinesReader() override;

  // Errors: a line that is not an object of JSON, lacks a member, or has null, an array or an
  // object there; a NUL; a line of over maximum_line bytes.
  bool next(std::string& source, std::string& target) override;
  std::string where() const override;
  int64_t line() const override;
  bool goes_on() const override { return true; }
  std::vector<std::string> columns() const override { return {source_column_, target_column_}; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string source_column_, target_column_;
};

}  // namespace attend
