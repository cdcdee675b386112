#include "attend/mechanisms/worked_example.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/mechanisms/compute_gradients.h"
#include "attend/mechanisms/steps_text.h"
#include "tests/support/files.h"

namespace attend {
namespace worked_example_test {

using at::Tensor;
using testing::HasSubstr;
using testing::Not;

// Two queries over three keys, with weights of one third.
ComputeProblem even_problem() {
  ComputeProblem problem;
  problem.query = at::zeros({2, 4}, at::kDouble);
  problem.key = at::ones({3, 4}, at::kDouble);
  problem.value = at::tensor({3.0, 6.0, 9.0}, at::kDouble).view({3, 1});
  return problem;
}

TEST(ComputeProblem, NamesWhatIsMissingAndWhatNothingTakes) {
  ComputeProblem problem = even_problem();
  problem.choices.score = "additive";
  EXPECT_THAT(test::error_of([&] { attended(problem); }),
              HasSubstr("parameter v [attention_depth] is missing"));
  problem.parameters = {{"v", at::ones({4}, at::kDouble)}, {"W_Q", at::eye(4, at::kDouble)}};
  EXPECT_THAT(test::error_of([&] { attended(problem); }), HasSubstr("did you mean W_q?"));
  problem.choices.score = "dot";
  EXPECT_THAT(test::error_of([&] { attended(problem); }), HasSubstr("score dot has no parameters"));
}

// The context is the mean of the values for all queries. The queries have no gradient, and each
// value has a third of the context's.
TEST(ComputeProblem, HasTheGradientsOfEachInput) {
  ComputeProblem problem = even_problem();
  problem.context_gradient = at::tensor({1.0, 2.0}, at::kDouble).view({2, 1});
  const auto gradients = compute_gradients(problem);
  EXPECT_TRUE(gradients.at("grad_value").allclose(at::full({3, 1}, 1.0, at::kDouble)));
  // d context / d q_i = sum_j w_ij (v_j - c_i) k_j / sqrt(4), which cancels for equal keys.
  EXPECT_TRUE(gradients.at("grad_query").allclose(at::zeros({2, 4}, at::kDouble)));
  problem.context_gradient = at::ones({1, 2}, at::kDouble);
  EXPECT_THAT(test::error_of([&] { compute_gradients(problem); }),
              HasSubstr("has shape [1, 2], the context [2, 1]"));
}

// Encoded positions are the positions of the queries among the keys. The last queries of a
// sequence, or queries with an offset per batch entry, have the same results as among all queries.
TEST(ComputeProblem, EncodesThePositionsWhereQueriesStand) {
  const at::Generator draws = at::detail::createCPUGenerator(3);
  const Tensor x = at::randn({2, 5, 4}, draws).to(at::kDouble);
  for (const char* name : {"rope", "sinusoidal", "learned_positions"}) {
    SCOPED_TRACE(name);
    ComputeProblem problem;
    problem.mechanism = &mechanism(name);
    problem.query = problem.key = problem.value = x;
    problem.choices.scope = "causal";
    if (std::string(name) == "learned_positions")
      problem.parameters = {{"positions", at::randn({6, 4}, draws).to(at::kDouble)}};
    const auto context = [&] {
      const Attended given = attended(problem);
      return attention(given.query, given.key, given.value, given.spec).context;
    };
    const Tensor wanted = context();
    problem.query = x.narrow(1, 3, 2);
    problem.align = Align::last;
    EXPECT_TRUE(context().allclose(wanted.narrow(1, 3, 2)));
    problem.align = Align::first;
    problem.query_offsets = at::tensor({3, 1}, at::kLong);
    problem.query = at::stack({x[0].narrow(0, 3, 2), x[1].narrow(0, 1, 2)});
    EXPECT_TRUE(
        context().allclose(at::stack({wanted[0].narrow(0, 3, 2), wanted[1].narrow(0, 1, 2)})));
    problem.query_offsets = at::tensor({int64_t{1} << 60}, at::kLong).squeeze();
    EXPECT_THAT(test::error_of([&] { attended(problem); }),
                HasSubstr("query_offsets move queries"));
    problem.query_offsets = at::tensor({-2}, at::kLong).squeeze();
    if (std::string(name) != "rope") {
      EXPECT_NE(test::error_of([&] { attended(problem); }), "");
    }
  }
}

TEST(WorkedExample, WritesEachStepOfTheFirstHead) {
  ComputeProblem problem = even_problem();
  for (Tensor* x : {&problem.query, &problem.key, &problem.value})
    *x = at::stack({*x, *x * 100}).unsqueeze(0);
  const std::string text = worked_example(problem);
  EXPECT_THAT(text, HasSubstr("batch element 1 of 1, head 1 of 2\n"));
  EXPECT_THAT(text, HasSubstr("Weights W [2, 3]: w_ij = exp(s_ij) / sum_j exp(s_ij)"));
  EXPECT_THAT(text, HasSubstr("  0.3333  0.3333  0.3333\n"));
  EXPECT_THAT(text,
              HasSubstr("Context C = W V [2, 1]: c_i = sum_j w_ij v_j\n   6.0000\n   6.0000\n"));
  EXPECT_THAT(text, Not(HasSubstr("Scores in scope"))) << "every key is in scope";
}

TEST(WorkedExample, SaysWhereThereIsNothing) {
  ComputeProblem problem = even_problem();
  for (Tensor* x : {&problem.query, &problem.key, &problem.value})
    *x = x->unsqueeze(0).narrow(0, 0, 0);
  EXPECT_THAT(worked_example(problem), HasSubstr("the batch is empty"));
}

TEST(Step, ShowsTheCornersOfWhatIsLarge) {
  const std::string text = step("M", at::arange(100, at::kDouble).view({10, 10}), "a formula");
  EXPECT_THAT(text, HasSubstr("M [10, 10]: a formula\n"));
  EXPECT_THAT(text, HasSubstr("   0.0000   1.0000   2.0000      ...   7.0000   8.0000   9.0000\n"));
  EXPECT_THAT(text, Not(HasSubstr("33.0000")));
  EXPECT_THAT(text, HasSubstr("99.0000"));
}

TEST(Step, WritesVectorsSmallNumbersAndNothing) {
  EXPECT_EQ(step("v", at::tensor({1.0, -2.0})), "v [2]\n    1.0000  -2.0000\n\n");
  EXPECT_EQ(step("v", at::tensor({1e-4, 0.0}, at::kDouble)), "v [2]\n   1.000e-04  0.000e+00\n\n");
  EXPECT_EQ(step("v", at::tensor({-1e-6, 1.0}, at::kDouble)), "v [2]\n   0.0000  1.0000\n\n");
  EXPECT_THAT(step("v", at::zeros({0, 3})), HasSubstr("(empty)"));
}

}  // namespace worked_example_test
}  // namespace attend
