#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/inference/model.h"
#include "attend/text/line_reader.h"

namespace attend {

// Reads lines of standard input in portions. Reports truncated and unreadable lines on standard
// error.
class SourceLines {
 public:
  explicit SourceLines(bool skip_bad);

  // Reads the next portion. Returns false at the end of input. Error on a line that is not valid
  // text. If bad lines are skipped, reports the line instead, calls `answer_bad` and returns an
  // empty portion.
  bool read(std::vector<std::string>& lines,
            const std::function<void(const std::string& error)>& answer_bad);

  // Line number in the input, from 1, of a line of the portion.
  int64_t number(size_t index) const { return first_ + static_cast<int64_t>(index); }

  // Calls `ask`. Converts a SourceError of the portion to an Error that names the line.
  void ask(const std::function<void()>& ask) const;

  void tell_truncated(size_t index, const Model& model) const;
  void tell_bad(size_t index, const std::string& error);

  // Reports the number of bad lines; exit code 1 if there are any.
  void end(const char* results) const;

 private:
  bool skips_bad_;
  LineReader reader_;
  int64_t first_ = 1, bad_ = 0;
};

// Counts source tokens unknown to a model.
class UnknownCount {
 public:
  // Adds the numbers of tokens and unknown tokens of a line. Line 0: no line number.
  void add(int64_t tokens, const std::vector<std::string>& unknown, int64_t line);
  // Adds the tokens of a source, if sources are texts.
  void add(const Model& model, const std::string& source, int64_t line);
  // Reports the count, if not 0, after the prefix `data`, such as "test.tsv: ".
  void tell(const std::string& data) const;

 private:
  int64_t tokens_ = 0, unknown_ = 0;
  int64_t line_ = 0;  // line of the first unknown token; 0: no line number
  std::string first_;
};

// Error if standard output cannot be written.
void flush_output();

}  // namespace attend
