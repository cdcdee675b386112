#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attend/files/compressed.h"
#include "attend/text/pair_table.h"

namespace attend {

// Reads JSON Lines: one object per line. Sources and targets are its members. Texts are unchanged,
// except that a line break or a TAB becomes a space; numbers and booleans become their form in
// JSON. Blank lines are skipped.
class JsonLinesReader : public PairTable {
 public:
  // `source_column` as for open_pair_table. Error, naming the file, if a column is not named (or,
  // if so, the file is empty), or two names are equal.
  JsonLinesReader(ByteReader bytes, const std::string& source_column, std::string target_column,
                  int64_t maximum_line);
  ~JsonLinesReader() override;

  // Errors: a line that is not an object of JSON, lacks a member, or has null, an array or an
  // object there; a NUL; a line of over maximum_line bytes.
  bool next(std::string& source, std::string& target) override;
  std::string where() const override;
  int64_t line() const override;
  bool goes_on() const override { return true; }
  std::vector<std::string> columns() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<std::string> sources_;
  std::string target_;
};

}  // namespace attend
