#include "attend/cli/log_writer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

int64_t lines_of(std::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

LogWriter::LogWriter(int descriptor, LostLine lost_line, size_t limit)
    : descriptor_(descriptor),
      wake_(eventfd(0, EFD_CLOEXEC)),
      lost_line_(std::move(lost_line)),
      limit_(limit) {
  if (wake_ < 0) fail("the log cannot be written: {}; raise ulimit -n", std::strerror(errno));
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    close(wake_);
    fail("the thread of the log cannot be started: {}; raise ulimit -u", error.what());
  }
}

LogWriter::~LogWriter() {
  stop();
  close(wake_);
}

void LogWriter::add(std::string_view line) {
  const std::lock_guard lock(mutex_);
  std::string report;
  if (lost_ > reported_) report = lost_line_(lost_ - reported_) + '\n';
  if (is_ended_ || waiting_.size() + report.size() + line.size() + 1 > limit_) {
    ++lost_;
    return;
  }
  reported_ = lost_;
  waiting_.append(report).append(line).push_back('\n');
  changed_.notify_one();
}

void LogWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  changed_.notify_one();
  eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
}

int64_t LogWriter::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void LogWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string text = std::exchange(waiting_, {});
    lock.unlock();
    const int64_t lost = write(text);
    lock.lock();
    lost_ += lost;
  }
}

// Returns the number of lost lines.
int64_t LogWriter::write(std::string_view text) {
  while (!text.empty()) {
    // A writable pipe accepts PIPE_BUF bytes without blocking. Whole lines do not mix with lines of
    // other writers.
    size_t size = std::min<size_t>(text.size(), PIPE_BUF);
    if (const size_t end = text.rfind('\n', size - 1); end != std::string_view::npos)
      size = end + 1;
    if (!wait_until_writable()) return lines_of(text);
    const ssize_t written = ::write(descriptor_, text.data(), size);
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (written < 0) return lines_of(text);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// Returns false if stop() was called and the descriptor is not writable.
bool LogWriter::wait_until_writable() {
  pollfd waits[] = {{descriptor_, POLLOUT, 0}, {wake_, POLLIN, 0}};
  while (poll(waits, 2, -1) < 0 && errno == EINTR) {
  }
  return waits[0].revents != 0;
}

}  // namespace attend
