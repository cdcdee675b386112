#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// The other processes of a run on this machine: this program once more with the same arguments,
// for ranks 1, 2, ... Sets the environment that place_of_environment() reads, in this process too,
// whose rank is 0; they meet in a file of a temporary folder.
class ChildProcesses {
 public:
  // `count` of processes in all, 2 or more. std::system_error where they cannot be started.
  explicit ChildProcesses(int64_t count);
  // Waits for them, and ends those that are still there after some seconds; at once where an
  // exception is on its way, for then they wait for this process in vain.
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

// Has this process, where a ChildProcesses started it, killed once that one has ended, however it
// did: until they have met, nothing else would tell. Returns whether one started it.
// std::runtime_error where that has ended already.
bool end_with_starter();

}  // namespace attend
