#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace attend {

// Writes lines to a descriptor on its own thread. A reader that stops reading, a pipe without a
// reader or a full disk costs lines, which are counted, and delays nothing else. Requires that
// SIGPIPE is ignored.
class LogWriter {
 public:
  // Returns the line that reports so many lost lines, without a line feed.
  using LostLine = std::function<std::string(int64_t lines)>;

  // Lines wait in at most `limit` bytes of memory. Error if there is no descriptor or thread.
  LogWriter(int descriptor, LostLine lost_line, size_t limit = 1 << 20);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // From any thread; never waits for the descriptor. `line` has no line feed. Lines that were lost
  // are reported before the next line that is not.
  void add(std::string_view line);
  // Writes what can be written without waiting, and ends. Later lines are lost.
  void stop();
  // Lines that were lost so far.
  int64_t lost() const;

 private:
  void work();
  int64_t write(std::string_view text);
  bool wait_until_writable();

  int descriptor_, wake_;  // wake_: an eventfd that interrupts the wait for the descriptor
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
