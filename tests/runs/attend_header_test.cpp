// Tests that attend.h suffices for a program that trains, answers and computes.
#include <gtest/gtest.h>

#include "attend/attend.h"
#include "tests/support/files.h"

namespace attend {
namespace attend_header_test {

TEST(AttendHeader, IsEnough) {
  const test::TemporaryFolder folder;
  const std::string pairs = folder.write("pairs.tsv", "a\tx\nb\ty\nab\tx y\nba\ty x\n");
  TrainOptions options;
  options.data = options.valid = pairs;
  options.out = folder / "model";
  options.assignments = {"train.steps=1", "train.replicas=1", "model.hidden=8",
                         "model.embedding=8"};
  EXPECT_EQ(train_model(options).outcome.steps, 1);
  EXPECT_EQ(Model(options.out).answer({"ab"}).size(), 1U);
  const at::Tensor x = at::ones({3, 4});
  EXPECT_TRUE(attention(x, x, x, {}).context.allclose(x));
  MultiHeadAttention heads({.depth = 4, .groups = {{.heads = 2}}});
  EXPECT_EQ(heads.forward(x.unsqueeze(0), x.unsqueeze(0)).sizes(), x.unsqueeze(0).sizes());
  kernels::Problem<float> problem;
  EXPECT_EQ(problem.normaliser, kernels::Normaliser::softmax);
}

}  // namespace attend_header_test
}  // namespace attend
