#include "attend/kernels/selftest.h"

#include <gmock/gmock.h>
#include <hwy/targets.h>

#include <stdexcept>

namespace attend::kernels {
namespace selftest_test {

TEST(Selftest, EveryTargetOfThisCpuPasses) {
  const std::vector<SelftestFinding> findings = selftest(1);
  ASSERT_EQ(findings.size(), hwy::SupportedAndGeneratedTargets().size());
  for (const SelftestFinding& finding : findings) {
    EXPECT_EQ(finding.failures, 0) << finding.target << ": " << finding.result;
    EXPECT_LE(finding.error, finding.bound) << finding.target;
    EXPECT_GT(finding.error, 0) << finding.target;
    EXPECT_GT(finding.results, 1000) << finding.target;
  }
}

// Changes one number of one context by a thousandth.
void flawed_forward(const Problem<float>& problem, const Result<float>& result, int threads) {
  attention_forward(problem, result, threads);
  result.context.row(0, 0, problem.shape.queries - 1)[0] += 1e-3F;
}

TEST(Selftest, ReportsAWrongContext) {
  for (const SelftestFinding& finding : selftest(1, {.forward = flawed_forward})) {
    EXPECT_GT(finding.failures, 100) << finding.target;
    EXPECT_GT(finding.error, finding.bound) << finding.target;
    EXPECT_THAT(finding.result, ::testing::StartsWith("float, ")) << finding.target;
  }
}

// Ignores the last query.
void flawed_backward(const Problem<float>& problem, const Upstream<float>& upstream,
                     const Gradients<float>& gradients, int threads) {
  Problem<float> shorter = problem;
  shorter.scope = intersect(problem.scope, {{{GlobalRows{problem.shape.queries - 1}}}});
  attention_backward(shorter, upstream, gradients, threads);
}

TEST(Selftest, ReportsAWrongGradient) {
  for (const SelftestFinding& finding : selftest(1, {.backward = flawed_backward})) {
    EXPECT_GT(finding.failures, 100) << finding.target;
    EXPECT_THAT(finding.result, ::testing::HasSubstr("gradient of")) << finding.target;
  }
}

TEST(Selftest, ReportsWhatIsThrown) {
  const auto refuse = [](const Problem<float>&, const Result<float>&, int) {
    throw std::runtime_error("no such kernel");
  };
  for (const SelftestFinding& finding : selftest(1, {.forward = refuse})) {
    EXPECT_GT(finding.failures, 100);
    EXPECT_THAT(finding.result, ::testing::HasSubstr("no such kernel"));
  }
}

TEST(Selftest, LeavesTheBestTargetInUse) {
  const std::vector<SelftestFinding> findings = selftest(0);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].results, 0);
  EXPECT_EQ(hwy::SupportedAndGeneratedTargets().size(), findings.size());
}

}  // namespace selftest_test
}  // namespace attend::kernels
