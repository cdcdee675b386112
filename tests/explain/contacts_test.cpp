#include "attend/explain/contacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attend/explain/answer_page.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/shown.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace contacts_test {

using at::Tensor;

test::SmallModel small(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"model.depth=8", "model.heads=2", "model.feed_forward=10",
                                  "model.layers=3", "model.contact_head=true"};
  all.insert(all.end(), more.begin(), more.end());
  test::SmallModel model("encoder", "encoder", all);
  const at::NoGradGuard no_gradient;
  for (auto& item : model.model.network->named_parameters())
    if (item.key().find("contacts") != std::string::npos)
      item.value().copy_(at::randn_like(item.value()));
  return model;
}

// The definition, number by number.
Tensor expected(const ContactHead& head, const std::vector<LayerMap>& maps, int64_t first,
                int64_t count) {
  Tensor all = at::empty({count, count}, at::kDouble);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < count; ++j) {
      double logit = head.bias.item<double>();
      int64_t feature = 0;
      for (const LayerMap& map : maps)
        for (const Tensor& weights : map.weights.unbind()) {
          const Tensor text = weights.slice(0, first, first + count).slice(1, first, first + count);
          const auto both = [&](const Tensor& one) { return one.sum().item<double>(); };
          const double row = both(text[i]) + both(text.select(1, i)),
                       column = both(text[j]) + both(text.select(1, j)), total = 2 * both(text);
          const double sum = (text[i][j] + text[j][i]).item<double>();
          logit += head.weight[0][feature++].item<double>() * (sum - row * column / total);
        }
      all[i][j] = 1 / (1 + std::exp(-logit));
    }
  return all;
}

TEST(Contacts, AreTheRegressionOfCorrectedMaps) {
  for (const char* token : {"model.class_token=false", "model.class_token=true"}) {
    const test::SmallModel model = small({token});
    const Explanation explanation(model.subject());
    const ContactMap found = contact_map(explanation);
    EXPECT_THAT(found.tokens, testing::ElementsAre("a", "b", "c", "d", "e"));
    const int64_t first = token == std::string("model.class_token=true") ? 1 : 0;
    const Tensor wanted =
        expected(*model.model.network->contact_head(),
                 layer_maps(explanation.subject(), explanation.trace()), first, 5);
    // Sums of six products of numbers near 1.
    EXPECT_TRUE(at::allclose(found.probabilities, wanted, 0, 1e-13)) << token;
    EXPECT_TRUE(at::allclose(found.probabilities, found.probabilities.t(), 0, 1e-15));
  }
}

TEST(Contacts, AreAViewAndAMapOfThePage) {
  const test::SmallModel model = small();
  const Explanation explanation(model.subject());
  const Shown shown = show(explanation, {.view = ExplanationView::contacts});
  ASSERT_EQ(shown.maps.size(), 1U);
  EXPECT_EQ(shown.maps[0].title, "contacts");
  EXPECT_TRUE(shown.is_one_sequence);
  const ExplanationPage page = answer_page(explanation, {}, std::nullopt);
  EXPECT_EQ(page.maps.back().name, "contacts");
  EXPECT_EQ(page.maps.size(), 4U);
  EXPECT_THAT(test::error_of([&] {
                show(explanation, {.view = ExplanationView::contacts, .choice = {.layer = 1}});
              }),
              testing::HasSubstr("leave method, layer and head out"));
}

TEST(Contacts, NeedAHeadForTheSameLayers) {
  const test::SmallModel without = test::small_model("encoder");
  EXPECT_THAT(test::error_of([&] { contact_map(Explanation(without.subject())); }),
              testing::HasSubstr("the model has no contact head; import"));
  const test::SmallModel model = small();
  const Explanation explanation(model.subject());
  const ContactHead other(2, 2);
  EXPECT_THAT(
      test::error_of([&] { contact_probabilities(other, explanation.trace().attentions, 0, 5); }),
      testing::HasSubstr("the attentions have 6 heads, and the contact head reads 4"));
}

}  // namespace contacts_test
}  // namespace attend
