#include "attend/base/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace attend {
namespace memory_test {

TEST(MemoryLimit, HeedsThatOfTheProcess) {
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

}  // namespace memory_test
}  // namespace attend
