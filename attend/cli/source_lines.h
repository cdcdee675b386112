#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/data/line_reader.h"
#include "attend/inference/model.h"

namespace attend {

// The lines of standard input, a portion at a time, and what is said about them on standard error.
class SourceLines {
 public:
  explicit SourceLines(bool skip_bad);

  // Reads the next portion; false at the end of input. Error on a line that is no valid text; where
  // bad lines are skipped, it is told, `answer_bad` is called, and the portion is empty.
  bool read(std::vector<std::string>& lines,
            const std::function<void(const std::string& error)>& answer_bad);

  // The number of a line of the portion, counted from 1 at the beginning of the input.
  int64_t number(size_t index) const { return first_ + static_cast<int64_t>(index); }

  // Calls `ask`; what it throws about a source of the portion becomes an Error that names the line.
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

// Error where standard output cannot be written.
void flush_output();

}  // namespace attend
