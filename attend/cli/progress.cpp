#include "attend/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "attend/cli/terminal.h"
#include "attend/machine/blas.h"
#include "attend/parallel/communicator.h"
#include "attend/pictures/sparkline.h"

namespace attend {
namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> stop_signal = 0;

// A second SIGINT or SIGTERM ends the program at once.
void request_stop(int signal) {
  stop_signal = signal;
  stop_requested = true;
  if (signal == SIGINT || signal == SIGTERM) std::signal(signal, SIG_DFL);
}

// Signals ignored at the start, such as SIGHUP under nohup, stay ignored.
void stop_at(int signal) {
  if (std::signal(signal, SIG_IGN) != SIG_IGN) std::signal(signal, request_stop);
}

// Ignores write errors: training continues if the terminal was closed.
template <class... Arguments>
void print_line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

constexpr auto terminal_interval = std::chrono::milliseconds(200);
constexpr auto plain_interval = std::chrono::seconds(10);
constexpr auto quiet_time = std::chrono::seconds(2);
constexpr const char* erase_below = "\r\033[J";
constexpr const char* erase_line = "\r\033[K";

std::chrono::milliseconds interval(bool terminal) {
  return terminal ? terminal_interval : std::chrono::milliseconds(plain_interval);
}

// Columns of the terminal; 80 if unknown or too narrow.
int64_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return 80;
  return size.ws_col;
}

bool on_terminal() { return moves_cursor(STDERR_FILENO); }

}  // namespace

Trained train_with_progress(const TrainOptions& options) {
  std::optional<ProgressPrinter> printer(std::in_place);
  TrainWatch watch;
  watch.say = [](const std::string& line) { print_line("{}\n", line); };
  watch.remark = print_remark;
  watch.progress = [&](const TrainProgress& progress, const Metric& metric) {
    printer->show(progress, metric);
  };
  watch.begin = [] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) stop_at(signal);
  };
  watch.stop = &stop_requested;
  Trained trained = train_model(options, watch);
  printer.reset();
  const bool leads = !options.world || options.world->leads();
  if (trained.outcome.interrupted && leads) {
    print_line("stopped at step {}; everything is saved; the same command continues{}\n",
               trained.outcome.steps, options.resume ? "" : " with --resume");
  }
  // If another process was interrupted, this one received no signal.
  if (trained.outcome.interrupted)
    throw CLI::RuntimeError(128 + (stop_signal == 0 ? SIGTERM : stop_signal.load()));
  return trained;
}

void warn_about_products() {
  const std::string warning = slow_products(loaded_blas(), measure_products());
  if (!warning.empty()) print_line("warning: {}\n", warning);
}

std::string clock_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

ProgressPrinter::ProgressPrinter() : terminal_(on_terminal()) {}

ProgressPrinter::~ProgressPrinter() {
  if (lines_below_ > 0) print_line("\033[{}B\r\n", lines_below_);
}

void ProgressPrinter::show(const TrainProgress& progress, const Metric& metric) {
  const auto now = std::chrono::steady_clock::now();
  loss_sum_ += progress.step_loss;
  ++loss_steps_;
  if (!progress.trouble.empty())
    print_line("{}attend: {}\n", terminal_ ? erase_below : "", progress.trouble);
  if (!progress.validation && now < next_) return;
  next_ = now + interval(terminal_);
  std::string line =
      fmt::format("epoch {} step {}/{} loss {:.4f} {:.0f} pairs/s", progress.epoch, progress.step,
                  progress.steps, progress.loss, progress.pairs_per_second);
  if (progress.validation) {
    line += fmt::format(" | valid loss {:.4f}", progress.validation->loss);
    if (metric.measured != MeasuredFor::always)  // the loss is always shown
      line += fmt::format(" {} {}", metric.title, metric.shown(progress.validation->metric));
    if (progress.equals_best)
      line +=
          progress.best ? " (best: equal, with a lower loss)" : " (equals the best, which is kept)";
    else if (progress.best)
      line += " (best)";
  }
  line += fmt::format(" | {} left", clock_time(progress.remaining));
  losses_.push_back(loss_sum_ / static_cast<double>(loss_steps_));
  loss_sum_ = 0;
  loss_steps_ = 0;
  if (progress.validation) valid_losses_.push_back(progress.validation->loss);
  if (terminal_)
    show_on_terminal(line, progress.validation.has_value());
  else
    print_line("{}\n", line);
  std::fflush(stderr);
}

// The cursor stays in the line to rewrite, above the plot.
void ProgressPrinter::show_on_terminal(const std::string& line, bool stays) {
  const int64_t columns = terminal_columns();
  // A wrapped line would need two lines to be erased.
  std::string text = stays ? line + "\n" : line.substr(0, static_cast<size_t>(columns - 1));
  lines_below_ = 0;
  const auto plot = [&](const char* name, const std::vector<double>& values) {
    if (values.size() < 2) return;
    text += fmt::format("\n{}{} {:.4f}", name, sparkline(values, columns - 24), values.back());
    ++lines_below_;
  };
  plot("training   ", losses_);
  plot("validation ", valid_losses_);
  if (lines_below_ > 0) text += fmt::format("\033[{}A", lines_below_);
  print_line("{}{}\r", erase_below, text);
}

void print_remark(const std::string& remark) { print_line("attend: {}\n", remark); }

CountPrinter::CountPrinter(std::string what)
    : what_(std::move(what)),
      terminal_(on_terminal()),
      start_(std::chrono::steady_clock::now()),
      next_(start_ + quiet_time) {}

CountPrinter::~CountPrinter() {
  if (shown_ && terminal_) print_line("{}", erase_line);
}

void CountPrinter::show(int64_t done, int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_ || done == 0) return;
  next_ = now + interval(terminal_);
  shown_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed * static_cast<double>(total - done) / static_cast<double>(done);
  print_line("{}{} {}/{} | {} left{}", terminal_ ? erase_line : "", what_, done, total,
             clock_time(left), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace attend
