#include "attend/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

namespace attend {
namespace {

constexpr auto terminal_interval = std::chrono::milliseconds(200);
constexpr auto plain_interval = std::chrono::seconds(10);
constexpr auto quiet_time = std::chrono::seconds(2);
constexpr const char* erase_line = "\r\033[K";

std::chrono::milliseconds interval(bool terminal) {
  return terminal ? terminal_interval : std::chrono::milliseconds(plain_interval);
}

bool on_terminal() { return ::isatty(STDERR_FILENO) == 1; }

}  // namespace

std::string clock_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

ProgressPrinter::ProgressPrinter(std::string metric)
    : metric_(std::move(metric)), terminal_(on_terminal()) {}

void ProgressPrinter::show(const TrainProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (!progress.validation && now < next_) return;
  next_ = now + interval(terminal_);
  std::string line =
      fmt::format("epoch {} step {}/{} loss {:.4f} {:.0f} pairs/s", progress.epoch, progress.step,
                  progress.steps, progress.loss, progress.pairs_per_second);
  if (progress.validation) {
    line += fmt::format(" | valid loss {:.4f} {} {:.2f} %{}", progress.validation->loss, metric_,
                        100 * progress.validation->metric, progress.best ? " (best)" : "");
  }
  line += fmt::format(" | {} left", clock_time(progress.remaining));
  const bool stays = !terminal_ || progress.validation;
  fmt::print(stderr, "{}{}{}", terminal_ ? erase_line : "", line, stays ? "\n" : "");
  std::fflush(stderr);
}

CountPrinter::CountPrinter(std::string what)
    : what_(std::move(what)),
      terminal_(on_terminal()),
      start_(std::chrono::steady_clock::now()),
      next_(start_ + quiet_time) {}

CountPrinter::~CountPrinter() {
  if (shown_ && terminal_) fmt::print(stderr, "{}", erase_line);
}

void CountPrinter::show(int64_t done, int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_ || done == 0) return;
  next_ = now + interval(terminal_);
  shown_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed * static_cast<double>(total - done) / static_cast<double>(done);
  fmt::print(stderr, "{}{} {}/{} | {} left{}", terminal_ ? erase_line : "", what_, done, total,
             clock_time(left), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace attend
