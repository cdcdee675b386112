#include "attend/inference/embedding_check.h"

#include <gtest/gtest.h>

#include "tests/inference/untrained_model.h"

namespace attend::embedding_check_test {
namespace {

const std::vector<std::string> texts = {"cab", "", "a", "bad", "da", "dabbad", "cab"};

TEST(EmbeddingCheck, FindsTheSameBits) {
  for (const char* type : {"encoder", "transformer", "lm", "seq2seq"}) {
    const PairModel stored = test::untrained_model(type);
    const Model one(stored, {.threads = 1}), two(stored, {.threads = 2});
    const EmbeddingCheck check = check_embeddings(one, two, texts);
    EXPECT_EQ(check.texts, 6) << type;  // one is empty
    EXPECT_TRUE(check.agrees()) << type;
  }
}

TEST(EmbeddingCheck, CountsTextsWithOtherBits) {
  PairModel changed = test::untrained_model("encoder");
  const Model model(test::untrained_model("encoder"));
  for (at::Tensor& each : changed.network->parameters()) {
    const at::NoGradGuard not_recorded;
    each.mul_(1.5);
  }
  const EmbeddingCheck check = check_embeddings(model, Model(std::move(changed)), texts);
  EXPECT_EQ(check.threads, 6);
  EXPECT_EQ(check.by_itself, 0);
  EXPECT_FALSE(check.agrees());
}

}  // namespace
}  // namespace attend::embedding_check_test
