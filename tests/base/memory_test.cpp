#include "attend/base/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <limits>

#include "tests/support/files.h"

namespace attend {
namespace memory_test {

TEST(MemoryLimit, HeedsThatOfTheProcess) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs more address space than any such limit";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const int64_t machine = memory_limit();
  EXPECT_GT(machine, int64_t{1} << 28);
  constexpr rlim_t less = 12345678;
  rlimit limited = before;
  limited.rlim_cur = less;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const int64_t limit = memory_limit();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(limit, int64_t{less});
}

// A folder of control groups; paths are relative to it.
class Groups {
 public:
  void set(const std::string& path, const std::string& text) {
    const std::filesystem::path file(folder_ / path);
    std::filesystem::create_directories(file.parent_path());
    folder_.write(path, text);
  }
  int64_t limit(const std::string& groups) const {
    return group_memory_limit(groups, folder_.path());
  }

 private:
  test::TemporaryFolder folder_;
};

constexpr int64_t none = std::numeric_limits<int64_t>::max();

TEST(GroupMemoryLimit, IsTheLeastOfAGroupAndThoseAround) {
  Groups groups;
  EXPECT_EQ(groups.limit("0::/job/step\n"), none);
  groups.set("memory.max", "max\n");
  groups.set("job/memory.max", "5000\n");
  groups.set("job/step/memory.max", "max\n");
  EXPECT_EQ(groups.limit("0::/job/step\n"), 5000);
  EXPECT_EQ(groups.limit("0::/job\n"), 5000);
  EXPECT_EQ(groups.limit("0::/other\n"), none);
  groups.set("job/step/memory.max", "700\n");
  EXPECT_EQ(groups.limit("0::/job/step\n"), 700);
}

TEST(GroupMemoryLimit, OfTheFirstVersionHasAFolderAndNameOfItsOwn) {
  Groups groups;
  groups.set("memory/memory.limit_in_bytes", "9223372036854771712\n");
  groups.set("memory/slurm/memory.limit_in_bytes", "6000\n");
  groups.set("memory/slurm/task/memory.limit_in_bytes", "8000\n");
  groups.set("cpu/slurm/memory.limit_in_bytes", "1\n");
  const std::string others = "12:cpu,cpuacct:/slurm\n", version_2 = "0::/\n";
  EXPECT_EQ(groups.limit(others + "5:memory:/slurm/task\n" + version_2), 6000);
  EXPECT_EQ(groups.limit(others + version_2), none);
  // A container sees its own group as the root.
  groups.set("memory/memory.limit_in_bytes", "4000\n");
  EXPECT_EQ(groups.limit("5:hugetlb,memory:/docker/0123\n"), 4000);
  EXPECT_EQ(groups.limit("no group\n"), none);
}

}  // namespace memory_test
}  // namespace attend
