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
  // A file of a new name in the folder, begun by the first event; events of other files there after
  // `step` no longer count.
  EventFile(std::string folder, int64_t step) : folder_(std::move(folder)), step_(step) {}

  // Appends one event, which is in the file on return. Error when it cannot be written.
  void write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void begin();
  void append(std::string_view event);

  std::string folder_;
  int64_t step_;
  std::string path_;  // empty before the first event
};

}  // namespace attend
