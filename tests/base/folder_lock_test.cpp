#include "attend/base/folder_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <filesystem>
#include <functional>
#include <optional>

#include "attend/base/files.h"
#include "tests/support/files.h"

namespace attend {
namespace folder_lock_test {

using test::error_of;
using testing::HasSubstr;

std::function<void(int command)> before_fcntl;

// A process that holds the lock until it is killed or ended.
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
    // The lock stays with its new owner.
    const FolderLock moved = std::move(lock);
    EXPECT_EQ(folder.entries(), 1U);
  }
  EXPECT_EQ(folder.entries(), 0U);
}

// The system would grant the lock twice in one process, and later release both.
TEST(FolderLock, IsOneObjectsAtATimeInAProcess) {
  const test::TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    EXPECT_THAT(error_of([&] { FolderLock other(folder.path() + "/./"); }),
                HasSubstr(fmt::format("process {} is writing there", getpid())));
    const pid_t child = fork();
    if (child == 0) _exit(error_of([&] { FolderLock other(folder.path()); }).empty() ? 1 : 0);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "another process has the right too";
    const test::TemporaryFolder elsewhere;
    EXPECT_EQ(error_of([&] { FolderLock another(elsewhere.path()); }), "");
  }
  EXPECT_EQ(error_of([&] { FolderLock again(folder.path()); }), "");
}

TEST(FolderLock, NeedsNoFolderThatCanBeWritten) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { FolderLock lock(folder / "none"); }), "");
  const std::string file = folder.write("file", "x");
  EXPECT_EQ(error_of([&] { FolderLock lock(file); }), "");
  EXPECT_EQ(folder.entries(), 1U);
}

// A function in place of fcntl acts as other processes do just before this one requests or queries
// the lock.
class FolderLockAmongOthers : public testing::Test {
 protected:
  ~FolderLockAmongOthers() override { before_fcntl = nullptr; }

  // `act` is called before the first fcntl of this command.
  static void before(int command, const std::function<void()>& act) {
    before_fcntl = [=](int asked) {
      if (asked != command) return;
      before_fcntl = nullptr;
      act();
    };
  }

  const test::TemporaryFolder folder;
  const std::string file = folder / FolderLock::name;
};

TEST_F(FolderLockAmongOthers, IsOnTheFileThatIsThere) {
  before(F_SETLK, [&] { unlink(file.c_str()); });
  const FolderLock lock(folder.path());
  EXPECT_TRUE(std::filesystem::exists(file));
  const pid_t child = fork();
  if (child == 0) _exit(error_of([&] { FolderLock other(folder.path()); }).empty() ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "another process has the right too";
}

// As on a file system that gives files different numbers each time.
TEST_F(FolderLockAmongOthers, IsNotSoughtForEver) {
  int64_t asked = 0;
  before_fcntl = [&](int) {
    ++asked;
    unlink(file.c_str());
  };
  EXPECT_EQ(error_of([&] { FolderLock lock(folder.path()); }), "");
  EXPECT_EQ(asked, 1000);
}

TEST_F(FolderLockAmongOthers, IsRefusedWhereAnotherMadeTheFileAnew) {
  std::optional<Holder> holder;
  before(F_SETLK, [&] {
    unlink(file.c_str());
    holder.emplace(folder.path());
  });
  const std::string error = error_of([&] { FolderLock lock(folder.path()); });
  EXPECT_THAT(error, HasSubstr(fmt::format("process {} is writing", holder->process)));
}

TEST_F(FolderLockAmongOthers, IsTakenFromOneThatEndsMeanwhile) {
  Holder holder(folder.path());
  before(F_GETLK, [&] { holder.stop(0); });
  const FolderLock lock(folder.path());
  EXPECT_EQ(folder.entries(), 1U);
}

}  // namespace folder_lock_test
}  // namespace attend

// Replaces the function of the C library, also in FolderLock.
extern "C" int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (const auto act = attend::folder_lock_test::before_fcntl) act(command);
  return static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}
