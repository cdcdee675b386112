#include <utility>

#include "attend/base/error.h"
#include "attend/data/checked_rows-inl.h"
#include "attend/data/tables.h"
#include "attend/text/fasta.h"
#include "attend/text/units.h"

namespace attend {

CheckedRows::CheckedRows(const PairFiles& files) : files_(files) {
  if (files.is_conll())
    sentences_.emplace(ByteReader(files.source), files.source_column, files.target_column,
                       longest_line);
  else if (files.is_table())
    table_ = open_table(files, longest_line);
  else if (is_fasta(files.source))
    source_.emplace(text_ = read_text(files.source), files.source, longest_line);
  else
    source_.emplace(ByteReader(files.source), longest_line);
  if (!files.target.empty()) target_.emplace(ByteReader(files.target), longest_line);
}

bool CheckedRows::next(CheckedRow& row) {
  row = {};
  const bool more = sentences_ ? read_sentence(row) : table_ ? read_table(row) : read_lines(row);
  count_ += more;
  return more;
}

bool CheckedRows::read_sentence(CheckedRow& row) {
  const int64_t before = sentences_->lines_read();
  try {
    if (!sentences_->next(row.source, row.target)) return false;
    normalise(row);
  } catch (const Error& error) {
    if (sentences_->lines_read() == before) throw;
    row.problem = error.what();
  }
  return true;
}

bool CheckedRows::read_table(CheckedRow& row) {
  if (!table_->goes_on()) return false;
  try {
    if (!table_->next(row.source, row.target)) return false;
  } catch (const Error& error) {
    row.problem = error.what();
    return true;
  }
  try {
    row.source = to_nfc(row.source);
    row.target = to_nfc(row.target);
  } catch (const Error& error) {
    row.problem = fmt::format("{}: {}", table_->where(), error.what());
  }
  return true;
}

bool CheckedRows::read_lines(CheckedRow& row) {
  const bool more = internal::next_text(*source_, row.source, row.problem);
  if (target_ && internal::next_text(*target_, row.target, row.problem) != more)
    fail("{}: the other file has fewer lines; line i of both files must be a pair",
         (more ? *source_ : *target_).where());
  if (!more || !row.problem.empty()) return more;
  if (tabs_ && !target_ && split_words(row.source).empty() && source_->only_blanks_follow())
    return false;
  normalise(row);
  if (!target_) split(row);
  return true;
}

// Error if a text is not UTF-8. Places in texts as they are stay right.
void CheckedRows::normalise(CheckedRow& row) const {
  for (std::string* text : {&row.source, &row.target})
    if (std::string normal = to_nfc(*text); !files_.takes_starts) *text = std::move(normal);
}

void CheckedRows::split(CheckedRow& row) {
  if (number() == 1)
    tabs_ = row.source.find('\t') != std::string::npos || !names_text(files_.source);
  if (!tabs_) return;
  try {
    internal::at_line(*source_, [&] { check_tabs(row.source, files_); });
  } catch (const Error& error) {
    row.problem = error.what();
    return;
  }
  const size_t tab = target_tab(row.source, files_);
  row.target = row.source.substr(tab + 1);
  row.source.resize(tab);
}

}  // namespace attend
