#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "attend/inference/evaluation.h"
#include "attend/inference/model.h"
#include "tests/inference/untrained_model.h"
#include "tests/support/files.h"
#include "tests/support/test_sink.h"

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
  // A fill-in model computes nothing if nothing is hidden.
  const AnswerKind& kind = model.answer_kind();
  if (!kind.fills()) {
    expect_refused("answer", [&] { model.answer({"cab"}); });
    expect_refused("evaluate", [&] { evaluate(model, examples, {}, {}); });
  }
  if (kind.continues()) expect_refused("text", [&] { likelihood_of_text(model, "cab bad"); });
  if (!kind.fills() && !kind.ranks())
    expect_refused("log_probabilities", [&] { model.log_probabilities(examples); });
  if (kind.is_label()) expect_refused("classify", [&] { model.classify({"cab"}); });
  if (kind.fills()) expect_refused("fill", [&] { model.fill("c[MASK]b"); });
  if (!kind.ranks()) expect_refused("embed", [&] { model.embed({"cab"}); });
}

// A model with an infinite vector of the token "b".
Model broken_model(const std::string& type) {
  PairModel parts = test::untrained_model(type);
  const at::NoGradGuard no_gradient;
  for (const auto& item : parts.network->named_parameters())
    if (item.value().dim() == 2 && item.value().size(0) == parts.source_vocabulary.size()) {
      item.value()[parts.source_vocabulary.id("b")].fill_(HUGE_VAL);
      break;  // the first match belongs to the source
    }
  return Model(parts, {.threads = 1, .skip_bad = true});
}

class OneTextOverflows : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, OneTextOverflows,
                         testing::Values("seq2seq", "transformer", "classifier", "tagger"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(OneTextOverflows, AndTheOthersAreAnsweredAsAlone) {
  const Model model = broken_model(GetParam());
  const std::vector<std::string> texts = {"cad", "cab", "dad", "bad"};
  std::vector<Answer> answers(texts.size());
  test::TestSink sink([&](size_t number, Answer answer) { answers[number] = std::move(answer); });
  std::vector<Request> requests = requests_of(texts, {}, &sink);
  model.answer_arriving([&](size_t) { return std::exchange(requests, {}); });
  const std::vector<Answer> in_order = model.answer(texts);
  const std::vector<Embedding> embeddings = model.embed(texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    const bool overflows = texts[i].find('b') != std::string::npos;
    EXPECT_EQ(answers[i].is_diverged, overflows) << texts[i];
    EXPECT_EQ(in_order[i].is_diverged, overflows) << texts[i];
    EXPECT_EQ(embeddings[i].is_diverged, overflows) << texts[i];
    EXPECT_EQ(answers[i].error.empty(), !overflows) << answers[i].error;
    if (overflows) continue;
    EXPECT_EQ(answers[i].best().log_probabilities,
              model.answer({texts[i]})[0].best().log_probabilities);
    EXPECT_EQ(embeddings[i].whole, model.embed({texts[i]})[0].whole);
  }
}

}  // namespace not_a_number_test
}  // namespace attend
