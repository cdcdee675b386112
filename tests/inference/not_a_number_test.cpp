#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"
#include "tests/inference/untrained_model.h"
#include "tests/support/files.h"

namespace attend {
namespace not_a_number_test {

using testing::HasSubstr;

class NaNWeights : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, NaNWeights,
                         testing::Values("seq2seq", "transformer", "classifier", "tagger", "lm",
                                         "encoder", "recommender"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(NaNWeights, GiveNoFigure) {
  PairModel parts = test::untrained_model(GetParam());
  {
    const at::NoGradGuard no_gradient;
    for (at::Tensor& tensor : parts.network->parameters()) tensor.fill_(std::nan(""));
  }
  const Model model(parts, {.threads = 1});
  const std::vector<Example> examples = {{"a", {"K"}}, {"b", {"B"}}};
  const auto expect_refused = [](const char* call, const std::function<void()>& run) {
    EXPECT_THAT(test::error_of(run), HasSubstr("weights are damaged or diverged")) << call;
  };
  expect_refused("likelihood", [&] { likelihood(model, examples); });
  // What fills its source in asks nothing where nothing is hidden.
  if (!model.fills()) {
    expect_refused("answer", [&] { model.answer({"cab"}); });
    expect_refused("evaluate", [&] { evaluate(model, examples, {}, {}); });
  }
  if (model.continues()) expect_refused("text", [&] { likelihood_of_text(model, "cab bad"); });
  if (!model.fills() && !model.ranks())
    expect_refused("log_probabilities", [&] { model.log_probabilities(examples); });
  if (model.answers_labels()) expect_refused("classify", [&] { model.classify({"cab"}); });
  if (model.fills()) expect_refused("fill", [&] { model.fill("c[MASK]b"); });
  if (!model.ranks()) expect_refused("embed", [&] { model.embed({"cab"}); });
}

}  // namespace not_a_number_test
}  // namespace attend
