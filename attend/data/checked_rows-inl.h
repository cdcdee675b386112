#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/text/conll.h"
#include "attend/text/lines.h"
#include "attend/text/pair_table.h"

namespace attend {

struct CheckedRow {
  std::string source, target;
  std::string problem;  // reason if it cannot be read
};

// Reads one file or two, and continues after invalid lines.
class CheckedRows {
 public:
  explicit CheckedRows(const PairFiles& files);

  bool next(CheckedRow& row);

  bool pairs() const { return sentences_ || table_ || target_ || tabs_; }
  std::vector<std::string> columns() const {
    return table_ ? table_->columns() : std::vector<std::string>();
  }
  int64_t count() const { return count_; }
  int64_t number() const {
    if (sentences_) return sentences_->line();
    return table_ ? table_->line() : source_->number();
  }

 private:
  bool read_sentence(CheckedRow& row);
  bool read_table(CheckedRow& row);
  bool read_lines(CheckedRow& row);
  void normalise(CheckedRow& row) const;
  void split(CheckedRow& row);

  std::optional<ConllReader> sentences_;
  std::unique_ptr<PairTable> table_;
  std::string text_;  // FASTA file, converted to one sequence per line
  std::optional<internal::Lines> source_, target_;
  PairFiles files_;
  bool tabs_ = false;
  int64_t count_ = 0;
};

}  // namespace attend
