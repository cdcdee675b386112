#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace attend {

// Writes lines to a descriptor on its own thread. If a reader stops, a pipe has no reader or the
// disk is full, lines are dropped and counted, and nothing else is delayed. Requires that SIGPIPE
// is ignored.
class LogWriter {
 public:
  // Returns the line that reports `lines` lost lines, without a line feed.
  using LostLine = std::function<std::string(int64_t lines)>;

  // Buffers at most `limit` bytes. Error if the system has no descriptor or thread left.
  LogWriter(int descriptor, LostLine lost_line, size_t limit = 1 << 20);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Queues `line`, which has no line feed. Never waits for the descriptor. Lost lines are reported
  // before the next written line. Thread-safe.
  void add(std::string_view line);
  // Writes what is possible without waiting, and ends. Later lines are lost.
  void stop();
  // Number of lines lost so far.
  int64_t lost() const;

 private:
  void work();
  int64_t write(std::string_view text);
  bool wait_until_writable();

  int descriptor_, wake_;  // wake_: eventfd that interrupts the wait for the descriptor
  LostLine lost_line_;
  size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;  // whole lines
  int64_t lost_ = 0, reported_ = 0;
  bool is_ended_ = false;
  std::thread thread_;
};

}  // namespace attend
