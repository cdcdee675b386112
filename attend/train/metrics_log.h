#pragma once

#include <cstdint>
#include <string>

namespace attend {

// A file with one JSON object per line, each with its step.
class MetricsLog {
 public:
  explicit MetricsLog(std::string path) : path_(std::move(path)) {}

  // Removes the lines after `step` and an incomplete last line; the file may be absent.
  void truncate_after(int64_t step) const;

  // Appends one line; after an Error the file is unchanged.
  void append(const std::string& object) const;

 private:
  std::string path_;
};

}  // namespace attend
