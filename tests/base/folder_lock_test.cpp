#include "attend/base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "attend/base/files.h"
#include "tests/support/files.h"

namespace attend {
namespace folder_lock_test {

using test::error_of;
using testing::HasSubstr;

// A process that has the lock, until it is killed or told to end.
class Holder {
 public:
  explicit Holder(const std::string& folder) {
    std::array<int, 2> ready, end;
    EXPECT_EQ(pipe(ready.data()) + pipe(end.data()), 0);
    process = fork();
    char byte = 0;
    if (process == 0) {
      close(end[1]);
      {
        const FolderLock lock(folder);
        EXPECT_EQ(write(ready[1], &byte, 1), 1);
        EXPECT_EQ(read(end[0], &byte, 1), 0);
      }
      _exit(0);
    }
    close(end[0]);
    close(ready[1]);
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    end_ = end[1];
  }
  ~Holder() { stop(0); }

  void stop(int signal) {
    if (end_ < 0) return;
    if (signal != 0) kill(process, signal);
    close(end_);
    end_ = -1;
    waitpid(process, nullptr, 0);
  }

  pid_t process;

 private:
  int end_;
};

TEST(FolderLock, IsOneProcesssAtATime) {
  const test::TemporaryFolder folder;
  Holder holder(folder.path());
  EXPECT_EQ(error_of([&] { FolderLock lock(folder.path()); }),
            fmt::format("{}: process {} is writing there; wait until it has ended, stop it, or "
                        "choose another folder",
                        folder.path(), holder.process));
  EXPECT_TRUE(names_in(folder.path()).empty());
  holder.stop(0);
  EXPECT_EQ(folder.entries(), 0U);
  const FolderLock lock(folder.path());
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(FolderLock, EndsWithAProcessThatIsKilled) {
  const test::TemporaryFolder folder;
  Holder(folder.path()).stop(SIGKILL);
  EXPECT_EQ(folder.entries(), 1U);
  {
    FolderLock lock(folder.path());
    // It goes on with whoever it was handed to.
    const FolderLock moved = std::move(lock);
    EXPECT_EQ(folder.entries(), 1U);
  }
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(FolderLock, NeedsNoFolderThatCanBeWritten) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { FolderLock lock(folder / "none"); }), "");
  const std::string file = folder.write("file", "x");
  EXPECT_EQ(error_of([&] { FolderLock lock(file); }), "");
  EXPECT_EQ(folder.entries(), 1U);
}

// Processes that come and go: the one that has the lock is alone, although the file is another each
// time.
TEST(FolderLock, HoldsWhileOthersComeAndGo) {
  const test::TemporaryFolder folder;
  const std::string inside = folder / "inside";
  std::array<pid_t, 4> children;
  for (pid_t& child : children) {
    child = fork();
    if (child != 0) continue;
    int status = 0;
    for (int held = 0; held < 4000;) {
      if (error_of([&] {
            const FolderLock lock(folder.path());
            if (symlink("x", inside.c_str()) != 0) status = 1;
            unlink(inside.c_str());
            ++held;
          }) != "")
        std::this_thread::yield();
    }
    _exit(status);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(folder.entries(), 0U);
}

}  // namespace folder_lock_test
}  // namespace attend
