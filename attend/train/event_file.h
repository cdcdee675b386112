#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attend {

// A file of scalars that TensorBoard shows: records framed by their length and CRC-32C, each a
// protocol buffer `Event`
// (https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto).
class EventFile {
 public:
  // Begins a file of a new name in the folder; what other files there say of steps after `step` no
  // longer counts. Error when it cannot be written.
  EventFile(const std::string& folder, int64_t step);

  // Appends one event, which is in the file on return.
  void write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void append(std::string_view event);

  std::string path_;
};

}  // namespace attend
