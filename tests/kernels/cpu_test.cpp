#include "attend/kernels/cpu.h"

#include <gmock/gmock.h>
#include <hwy/targets.h>
#include <sched.h>

namespace attend {
namespace cpu_test {

using testing::Each;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StrEq;

TEST(Cpu, NamesTheTargetsThatHighwayWouldChoose) {
  const Cpu cpu = probe_cpu();
  ASSERT_THAT(cpu.targets, SizeIs(testing::Ge(1)));
  EXPECT_THAT(cpu.targets, Each(Not(StrEq("?"))));
  const int64_t supported = hwy::SupportedTargets();
  EXPECT_EQ(cpu.targets.front(), hwy::TargetName(supported & -supported));
  EXPECT_THAT(cpu.model, Not(IsEmpty()));
}

TEST(Cpu, CountsTheCoresOfThisProcess) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(probe_cpu().cores, CPU_COUNT(&before));
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(probe_cpu().cores, 1);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace cpu_test
}  // namespace attend
