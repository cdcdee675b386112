#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/data/line_reader.h"
#include "attend/inference/model.h"

namespace attend {

// Reads the lines of standard input in portions. Reports on standard error the lines that the model
// truncates, and those that cannot be read.
class SourceLines {
 public:
  explicit SourceLines(bool skip_bad);

  // Reads the next portion; false at the end of input. Error on a line that is no valid text. Where
  // bad lines are skipped, reports the line instead, calls `answer_bad` and gives an empty portion.
  bool read(std::vector<std::string>& lines,
            const std::function<void(const std::string& error)>& answer_bad);

  // The number of a line of the portion, counted from 1 at the beginning of the input.
  int64_t number(size_t index) const { return first_ + static_cast<int64_t>(index); }

  // Calls `ask`. Turns a SourceError of the portion into an Error that names the line.
  void ask(const std::function<void()>& ask) const;

  void tell_truncated(size_t index, const Model& model) const;
  void tell_bad(size_t index, const std::string& error);

  // Tells how many lines were bad; exit code 1 where any was.
  void end(const char* results) const;

 private:
  bool skips_bad_;
  LineReader reader_;
  int64_t first_ = 1, bad_ = 0;
};

// "first" or "last": which tokens of a source that is too long the model reads.
const char* kept_part(const Model& model);

// Counts the tokens of sources that a model does not know.
class UnknownCount {
 public:
  // Counts the tokens of a line and its unknown tokens. Line 0: no line.
  void add(int64_t tokens, const std::vector<std::string>& unknown, int64_t line);
  // Those of a source; none where sources are no texts.
  void add(const Model& model, const std::string& source, int64_t line);
  // Tells how many there are, if any, behind `data`, such as "test.tsv: ".
  void tell(const std::string& data) const;

 private:
  int64_t tokens_ = 0, unknown_ = 0;
  int64_t line_ = 0;  // the first that has one; 0: of none
  std::string first_;
};

// Error where standard output cannot be written.
void flush_output();

}  // namespace attend
