#include "attend/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.h"

namespace attend {
namespace files_test {

using test::contents;
using test::error_of;
using testing::HasSubstr;

TEST(ReadFile, ReturnsEveryByte) {
  const test::TemporaryFolder folder;
  const std::string bytes("a\0b\r\n\xff", 6);
  EXPECT_EQ(read_file(folder.write("f", bytes)), bytes);
  EXPECT_EQ(read_file(folder.write("empty", "")), "");
}

// For `> file` of a shell: replacing the file would lose what the program writes to the stream.
TEST(WriteFile, RefusesTheFileOfAStandardStream) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("f", "before");
  const std::string link = folder / "link";
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  for (const auto& [number, name] :
       {std::pair(STDOUT_FILENO, "standard output"), std::pair(STDERR_FILENO, "standard error")}) {
    const int kept = dup(number), file = open(path.c_str(), O_WRONLY);
    dup2(file, number);
    std::vector<std::string> errors;
    for (const std::string& each : {path, link, fmt::format("/dev/fd/{}", number)})
      errors.push_back(error_of([&] { write_file(each, "after"); }));
    dup2(kept, number);
    close(kept);
    close(file);
    EXPECT_THAT(errors, testing::Each(HasSubstr(fmt::format("is already open as {}", name))));
  }
  EXPECT_EQ(contents(path), "before");
  write_file(path, "after");
  EXPECT_EQ(contents(path), "after");
}

TEST(ReadFile, NamesAMissingFile) {
  EXPECT_EQ(error_of([] { read_file("/nowhere/at/all"); }), "/nowhere/at/all: no such file");
}

TEST(ReadFile, RefusesWhatIsNoRegularFile) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { read_file(folder.path()); }), HasSubstr("is a folder"));
  EXPECT_THAT(error_of([] { read_file("/dev/zero"); }), HasSubstr("is not a regular file"));
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { read_file(pipe); }), HasSubstr("is not a regular file"));
}

TEST(ReadFile, RefusesAFileOverTheLimitBeforeReadingIt) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("f", "abcd");
  EXPECT_EQ(read_file(path, 4), "abcd");
  EXPECT_EQ(error_of([&] { read_file(path, 3); }), path + ": has 4 bytes; at most 3 are read");
  // A sparse file of a terabyte, too large to read.
  ASSERT_EQ(truncate(path.c_str(), int64_t{1} << 40), 0);
  EXPECT_THAT(error_of([&] { read_file(path); }), HasSubstr("at most"));
}

TEST(WriteFile, CreatesAndReplaces) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "f";
  write_file(path, "one");
  EXPECT_EQ(contents(path), "one");
  const std::string bytes("t\0wo\n", 5);
  write_file(path, bytes);
  EXPECT_EQ(contents(path), bytes);
  write_file(path, "");
  EXPECT_EQ(contents(path), "");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(WriteFile, TakesItsModeFromTheUmask) {
  const test::TemporaryFolder folder;
  const mode_t before = umask(027);
  write_file(folder / "f", "x");
  umask(before);
  struct stat status;
  ASSERT_EQ(stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(WriteFile, KeepsTheModeOfWhatItReplaces) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("f", "old");
  for (const mode_t mode : {0600, 0664, 0444}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    write_file(path, "new");
    struct stat status;
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, mode);
  }
}

TEST(WriteFile, TakesThePlaceOfALinksTarget) {
  const test::TemporaryFolder folder;
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_EQ(contents(folder / "target"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

TEST(WriteFile, WritesIntoTheCurrentFolder) {
  const test::TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file("plain", "x");
  std::filesystem::current_path(before);
  EXPECT_EQ(contents(folder / "plain"), "x");
}

TEST(WriteFile, RefusesPlacesThatHoldNoFile) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { write_file(folder.path(), "x"); }), HasSubstr("is a folder"));
  EXPECT_THAT(error_of([&] { write_file(folder / "none/f", "x"); }),
              HasSubstr("does not exist; create it first"));
  EXPECT_THAT(error_of([] { write_file("/dev/null", "x"); }), HasSubstr("not a regular file"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const std::string file = folder.write("f", "");
  EXPECT_THAT(error_of([&] { write_file(file + "/g", "x"); }), HasSubstr("cannot be written"));
}

TEST(CheckWritable, RefusesWhatWriteFileRefusesAndLeavesNothing) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("f", "old");
  for (const std::string& path :
       {folder.path(), folder / "none/f", std::string("/dev/null"), file + "/g"}) {
    EXPECT_EQ(error_of([&] { check_writable(path); }), error_of([&] { write_file(path, ""); }));
    EXPECT_NE(error_of([&] { check_writable(path); }), "");
  }
  check_writable(file);
  check_writable(folder / "new");
  EXPECT_EQ(contents(file), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

// A write past the limit would end the process by a signal.
TEST(WriteFile, LeavesTheOldFileAndNothingElseWhenItFails) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("f", "old");
  struct rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  struct rlimit limit = old_limit;
  limit.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message = error_of([&] { write_file(path, std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &old_limit);
  EXPECT_THAT(message, HasSubstr(path + ": cannot be written: it has 5000 bytes"));
  EXPECT_THAT(message, HasSubstr("ulimit -f"));
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(WriteFile, SaysThatTheDiskIsFull) {
  const test::TemporaryFolder folder;
  if (mount("none", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a small file system takes root";
  }
  const std::string path = folder.write("f", "old");
  const std::string message = error_of([&] { write_file(path, std::string(1 << 20, 'x')); });
  const std::string after = contents(path);
  const size_t entries = folder.entries();
  umount(folder.path().c_str());
  EXPECT_EQ(message, fmt::format("{}: the disk is full; free 1048576 bytes in {} or write "
                                 "somewhere else",
                                 path, folder.path()));
  EXPECT_EQ(after, "old");
  EXPECT_EQ(entries, 1u);
}

TEST(RemoveTemporaryFiles, TakesWhatAKilledWriterLeft) {
  const test::TemporaryFolder folder;
  // Linux assigns no process this number.
  const std::string ended = fmt::format(".attend-{}-0.tmp", (1 << 22) + 1);
  const std::string own = fmt::format(".attend-{}-7.tmp", getpid());
  const std::string others = fmt::format(".attend-{}-0.tmp", getppid());
  for (const std::string& name : {ended, own, others}) folder.write(name, "half");
  folder.write("weights.tmp", "x");
  folder.write(".attend-notes", "x");
  folder.write(".attend-x-0.tmp", "x");
  EXPECT_EQ(names_in(folder.path()),
            (std::set<std::string>{".attend-notes", ".attend-x-0.tmp", "weights.tmp"}));
  remove_temporary_files(folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder / ended));
  EXPECT_FALSE(std::filesystem::exists(folder / own));
  EXPECT_TRUE(std::filesystem::exists(folder / others));
  EXPECT_EQ(folder.entries(), 4u);
  remove_temporary_files(folder / "none");
}

// Writes the file in a process that is killed when it enters or leaves a system call for the
// `stop`-th time. Returns false if it ended before.
bool kill_writer(const std::string& path, const std::string& bytes, int stop) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    write_file(path, bytes);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  for (; WIFSTOPPED(status) && stop > 0; --stop) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
  }
  if (!WIFSTOPPED(status)) return false;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return true;
}

// After a kill at any point, the file is the old or the new one.
TEST(WriteFile, SurvivesBeingKilled) {
  const test::TemporaryFolder folder;
  const std::string old_bytes(300'000, 'a'), new_bytes(400'000, 'b');
  const std::string path = folder.write("f", old_bytes);
  int kills[2] = {};  // runs that left the old file, and the new one
  for (int stop = 1; kill_writer(path, new_bytes, stop); ++stop) {
    const std::string found = contents(path);
    EXPECT_TRUE(found == old_bytes || found == new_bytes) << found.size() << " at " << stop;
    ++kills[found == new_bytes];
    write_file(path, old_bytes);
  }
  // The writer enters and leaves at least open, write, fsync and rename, then syncs the folder.
  EXPECT_GE(kills[0], 7);
  EXPECT_GE(kills[1], 1);
  remove_temporary_files(folder.path());
  EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace files_test
}  // namespace attend
