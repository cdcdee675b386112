// A library for LD_PRELOAD. It counts the events that change the contents of a folder: a file or a
// folder is created, written, renamed or removed. A killed program leaves the state between two
// events; fsync does not change that state. At the event of a write, the first half of the bytes is
// written. Other calls are not seen. Environment variables select what
// happens at an event:
//
//   EVENTS_BELOW   the folder; nothing is counted without it
//   EVENTS_LIST    every event appends a line to this file: "rename model/metrics.jsonl"
//   EVENTS_COPIES  the folder is copied to 1, 2, 3 ... in here at each event
//   EVENTS_SIGNAL  a signal is raised, once
//   EVENTS_NUMBER  at the event of this number, 1 for the first
//   EVENTS_CHANGE  only events with this line are numbered
//   EVENTS_CHILD   the child of this number gets the signal instead, and must end because of it
//
// The program must change the folder from a single thread.

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// Returns the C library's function with the name of a function below.
template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The handling of an event calls the functions below again.
thread_local bool at_work = false;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name) { return std::atoi(variable(name).c_str()); }

std::vector<pid_t>& children() {
  static std::vector<pid_t> all;
  return all;
}

// The path from the folder on, including its name; empty for other paths.
std::string name_below(const fs::path& path) {
  static const fs::path folder = variable("EVENTS_BELOW");
  if (folder.empty()) return "";
  const fs::path whole = (fs::current_path() / path).lexically_normal();
  const std::string name = whole.lexically_relative(folder.parent_path()).string();
  const std::string first = folder.filename().string();
  return name == first || name.starts_with(first + '/') ? name : "";
}

// Names of temporary files contain a process number, other names times.
std::string without_digits(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || !text.ends_with('#')) text += digit ? '#' : c;
  }
  return text;
}

void raise_signal() {
  const int signal = number("EVENTS_SIGNAL");
  const auto child = static_cast<size_t>(number("EVENTS_CHILD"));
  if (child == 0) {
    static_cast<void>(std::raise(signal));
    return;
  }
  const pid_t process = children().at(child - 1);
  kill(process, signal);
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT);
}

void count(const std::string& kind, const fs::path& path) {
  const std::string name = at_work ? "" : name_below(path);
  if (name.empty()) return;
  at_work = true;
  static int events = 0, counted = 0;
  ++events;
  const std::string line = kind + ' ' + without_digits(name);
  if (const std::string list = variable("EVENTS_LIST"); !list.empty())
    std::ofstream(list, std::ios::app) << line << '\n';
  // A copy reads the lock file, which releases the lock: no other process may use the folder then.
  const fs::path copies = variable("EVENTS_COPIES"), folder = variable("EVENTS_BELOW");
  if (!copies.empty() && fs::exists(folder))
    fs::copy(folder, copies / std::to_string(events), fs::copy_options::recursive);
  const std::string chosen = variable("EVENTS_CHANGE");
  if ((chosen.empty() || chosen == line) && ++counted == number("EVENTS_NUMBER")) raise_signal();
  at_work = false;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto function = original<int(const char*, int, ...)>("open");
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (!fs::exists(path)) count("create", path);
  }
  return function(path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));

ssize_t write(int file, const void* bytes, size_t size) {
  static const auto function = original<ssize_t(int, const void*, size_t)>("write");
  std::error_code none;  // set if the file is closed
  const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(file), none);
  if (at_work || name_below(path).empty()) return function(file, bytes, size);
  const ssize_t half = function(file, bytes, size / 2);
  if (half < 0) return half;
  count("write", path);
  const ssize_t rest =
      function(file, static_cast<const char*>(bytes) + half, size - static_cast<size_t>(half));
  return rest < 0 ? half : half + rest;
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto function = original<int(const char*, mode_t)>("mkdir");
  if (!fs::exists(path)) count("create", path);
  return function(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  static const auto function = original<int(const char*, const char*)>("rename");
  count("rename", to);
  return function(from, to);
}

int unlink(const char* path) noexcept {
  static const auto function = original<int(const char*)>("unlink");
  count("remove", path);
  return function(path);
}

int remove(const char* path) noexcept {
  static const auto function = original<int(const char*)>("remove");
  count("remove", path);
  return function(path);
}

int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) {
  static const auto function = original<decltype(posix_spawn)>("posix_spawn");
  const int error = function(process, path, actions, attributes, arguments, environment);
  if (error == 0) children().push_back(*process);
  return error;
}
}
