#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// The other processes of a run on this machine: this program once more with the same arguments,
// for ranks 1, 2, ... Sets the environment that place_of_environment() reads, in this process too,
// whose rank is 0; they connect by a file in a temporary folder.
class ChildProcesses {
 public:
  // `count` of processes in all, 2 or more. std::system_error where they cannot be started.
  explicit ChildProcesses(int64_t count);
  // Waits for them, and ends those that still run after some seconds; at once during an exception,
  // for then they wait for this process in vain.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  // Which of them has ended without success, and how: "rank 2 was ended by signal 9". Waits a
  // second for one to do so; empty where none does.
  std::string failure();
  // The same without waiting.
  std::string failure_so_far();

 private:
  struct Child {
    int pid = 0;
    bool ended = false;
    int status = 0;
  };
  void reap();
  bool all_ended() const;

  std::string folder_;
  std::vector<Child> children_;  // of ranks 1, 2, ...
};

// Where a ChildProcesses started this process, has the system kill it once the starter has ended in
// any way: before they are connected, nothing else would notice. Returns whether one started it.
// std::runtime_error where that has ended already.
bool end_with_starter();

}  // namespace attend
