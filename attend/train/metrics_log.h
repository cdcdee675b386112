#pragma once

#include <cstdint>
#include <string>

namespace attend {

// A file of one JSON object per line, each with its number of steps.
class MetricsLog {
 public:
  explicit MetricsLog(std::string path) : path_(std::move(path)) {}

  // Drops the lines after `step` and a last line that was cut; the file may be absent.
  void truncate_after(int64_t step) const;

  // Appends one line; on Error the file is as it was.
  void append(const std::string& object) const;

 private:
  std::string path_;
};

}  // namespace attend
