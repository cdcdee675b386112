#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// The other processes of a run on this machine: this program with the same arguments, for ranks 1,
// 2, ... Sets the environment of rank_of_environment(), also in this process, which has rank 0.
// The processes connect through a file in a temporary folder.
class ChildProcesses {
 public:
  // `count`: total number of processes, 2 or more. Throws std::system_error if one cannot be
  // started.
  explicit ChildProcesses(int64_t count);
  // Waits for the processes, and ends them after some seconds. During an exception it ends them at
  // once, because they would wait for this process.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  // Describes a process that has failed, for example "rank 2 was ended by signal 9". Waits up to a
  // second for a failure; empty if there is none.
  std::string failure();
  // As failure(), without waiting.
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
  std::vector<Child> children_;  // ranks 1, 2, ...
};

// If a ChildProcesses started this process, lets the system kill this process when the starter
// ends. Before the processes are connected, nothing else would detect this. Returns whether there
// is a starter. Throws std::runtime_error if the starter has already ended.
bool end_with_starter();

}  // namespace attend
