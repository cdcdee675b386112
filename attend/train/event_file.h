#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attend {

// A file of scalars for TensorBoard: records with length and CRC-32C, each a protocol buffer
// `Event`
// (https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto).
class EventFile {
 public:
  // The first event creates a new file in the folder. Events after `step` in older files there are
  // then ignored.
  EventFile(std::string folder, int64_t step) : folder_(std::move(folder)), step_(step) {}

  // Appends one event and flushes it. Error if the file cannot be written.
  void write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void begin();
  void append(std::string_view event);

  std::string folder_;
  int64_t step_;
  std::string path_;  // empty until the first event
};

}  // namespace attend
