#include "attend/runs/child_processes.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "attend/base/error.h"

namespace attend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* starter = "ATTEND_STARTER";  // environment variable with the starter's
                                                   // process id
constexpr std::chrono::milliseconds pause{20};
constexpr std::chrono::seconds to_fail{1}, to_end{5};

std::string make_folder() {
  const char* chosen = std::getenv("TMPDIR");
  const std::string folder = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::string pattern = folder + "/attend-run-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr)
    fail("{}: no folder can be made there: {}; processes meet in one: set TMPDIR to another folder",
         folder, std::generic_category().message(errno));
  return pattern;
}

// The arguments of this process, without terminating zeros.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (size_t begin = 0, end; begin < line.size(); begin = end + 1) {
    end = std::min(line.find('\0', begin), line.size());
    arguments.push_back(line.substr(begin, end - begin));
  }
  return arguments;
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

// posix_spawn takes char*, although it does not change the arguments.
int spawn(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ);
  if (error != 0) throw std::system_error(error, std::generic_category(), "another process");
  return pid;
}

}  // namespace

ChildProcesses::ChildProcesses(int64_t count) : folder_(make_folder()) {
  set("WORLD_SIZE", fmt::format("{}", count));
  set("ATTEND_MEETING", folder_ + "/meeting");
  set(starter, fmt::format("{}", getpid()));
  const std::vector<std::string> arguments = own_arguments();
  for (int64_t rank = 1; rank < count; ++rank) {
    set("RANK", fmt::format("{}", rank));
    children_.push_back({spawn(arguments)});
  }
  set("RANK", "0");
}

ChildProcesses::~ChildProcesses() {
  const bool failed = std::uncaught_exceptions() > 0;
  for (const int signal : {failed ? SIGKILL : 0, SIGTERM, SIGKILL}) {
    for (const Child& child : children_)
      if (signal != 0 && !child.ended) kill(child.pid, signal);
    const auto end = Clock::now() + to_end;
    for (reap(); !all_ended() && Clock::now() < end; reap()) std::this_thread::sleep_for(pause);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void ChildProcesses::reap() {
  for (Child& child : children_)
    if (!child.ended && waitpid(child.pid, &child.status, WNOHANG) == child.pid) child.ended = true;
}

bool ChildProcesses::all_ended() const {
  for (const Child& child : children_)
    if (!child.ended) return false;
  return true;
}

std::string ChildProcesses::failure() {
  const auto end = Clock::now() + to_fail;
  std::string found = failure_so_far();
  for (; Clock::now() < end && !all_ended(); found = failure_so_far())
    std::this_thread::sleep_for(pause);
  return found;
}

std::string ChildProcesses::failure_so_far() {
  reap();
  // A killed process is the cause; others end because of it.
  for (size_t i = 0; i < children_.size(); ++i)
    if (children_[i].ended && WIFSIGNALED(children_[i].status))
      return fmt::format("rank {} was ended by signal {}", i + 1, WTERMSIG(children_[i].status));
  for (size_t i = 0; i < children_.size(); ++i)
    if (children_[i].ended && WEXITSTATUS(children_[i].status) != 0)
      return fmt::format("rank {} ended with exit code {}", i + 1,
                         WEXITSTATUS(children_[i].status));
  return "";
}

bool end_with_starter() {
  const char* process = std::getenv(starter);
  // A process started by another program may inherit the variable of that program's starter.
  if (process == nullptr || fmt::format("{}", getpid()) == process) return false;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The starter may have ended before prctl.
  if (fmt::format("{}", getppid()) != process)
    throw std::runtime_error("the process that started this rank has ended");
  return true;
}

}  // namespace attend
