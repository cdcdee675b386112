#include "attend/explain/layer_answers.h"

#include <gtest/gtest.h>

#include "tests/explain/subjects.h"

namespace attend {
namespace layer_answers_test {

using at::Tensor;
using test::small_model;
using test::SmallModel;

// The last layer gives the network's answer, the first the answer without layers.
TEST(LayerAnswers, EndWithTheAnswer) {
  for (const char* name :
       {"transformer", "lm", "classifier_class", "encoder", "tagger", "seq2seq_with_layers"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const LayerAnswers answers = layer_answers(subject);
    const Tensor whole = trace_network(subject.network(), subject.batch).distributions[0].detach();
    const auto layers = static_cast<int64_t>(answers.layers.size());
    ASSERT_EQ(answers.log_probabilities.size(0), layers);
    EXPECT_TRUE(answers.log_probabilities[layers - 1].allclose(whole, 1e-9, 1e-9));
    EXPECT_TRUE(answers.log_probabilities.exp().sum(2).allclose(
        at::ones({layers, whole.size(0)}, at::kDouble)));
    EXPECT_FALSE(answers.log_probabilities[0].allclose(whole, 1e-3, 1e-3));
  }
  EXPECT_EQ(layer_answers(small_model("transformer").subject()).layers,
            (std::vector<std::string>{"input", "decoder 1", "decoder 2"}));
}

TEST(LayerAnswers, OfAPageAreTheMostProbableTokens) {
  for (const char* name : {"transformer", "tagger", "classifier_class"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const Tensor answers = layer_answers(subject).log_probabilities;
    const auto lens = page_lens(subject);
    ASSERT_TRUE(lens);
    const size_t places = subject.target.size();
    ASSERT_EQ(lens->cells.size(), lens->layers.size() * places);
    for (size_t i = 0; i < lens->cells.size(); ++i) {
      const auto t = static_cast<int64_t>(i % places);
      const Tensor one = answers[static_cast<int64_t>(i / places)][t];
      EXPECT_EQ(lens->cells[i].token,
                small.model.target_vocabulary.token(one.argmax().item<int64_t>()));
      EXPECT_NEAR(lens->cells[i].probability, one.max().exp().item<double>(), 1e-9);
      EXPECT_NEAR(lens->cells[i].own,
                  one[subject.batch.target[0][t].item<int64_t>()].exp().item<double>(), 1e-9);
    }
  }
  EXPECT_FALSE(page_lens(small_model("classifier_number").subject()));
  EXPECT_FALSE(page_lens(small_model("classifier_bag").subject()));
}

// A layer that adds nothing has the answer of the layer before.
TEST(LayerAnswers, SeeThatALayerAddsNothing) {
  const SmallModel small = small_model("lm");
  const Subject subject = small.subject();
  for (const auto& each : subject.network().named_parameters())
    if (each.key().find("layer1_self.output") != std::string::npos ||
        each.key().find("layer1_feed_forward.output") != std::string::npos)
      each.value().detach().zero_();
  const Tensor answers = layer_answers(subject).log_probabilities;
  EXPECT_TRUE(answers[2].allclose(answers[1], 1e-12, 1e-12));
  EXPECT_FALSE(answers[1].allclose(answers[0], 1e-3, 1e-3));
}

}  // namespace layer_answers_test
}  // namespace attend
