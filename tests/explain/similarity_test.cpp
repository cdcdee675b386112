#include "attend/explain/similarity.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include "attend/data/batches.h"
#include "attend/explain/shown.h"
#include "attend/explain/shown_similarity.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace similarity_test {

using at::Tensor;
using testing::HasSubstr;

test::SmallModel small(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"model.depth=8", "model.heads=2", "model.feed_forward=10",
                                  "model.layers=2"};
  all.insert(all.end(), more.begin(), more.end());
  test::SmallModel model("embedder", "embedder", all);
  // Biases and gains are initialised to 0 and 1, which would hide mistakes.
  const at::NoGradGuard no_gradient;
  at::manual_seed(3);
  for (const Tensor& each : model.model.network->parameters())
    each.add_(at::randn_like(each) * 0.2);
  return model;
}

SimilarityParts explained(const test::SmallModel& model, const std::string& first,
                          const std::string& second, const MethodChoice& choice = {}) {
  return similarity_parts(text_subject(model.model, first, "the text"),
                          text_subject(model.model, second, "pair"), choice);
}

// The similarity as `attend embed` gives it, by the vectors of a padded batch.
double padded_similarity(const PairModel& model, const std::string& first,
                         const std::string& second, bool is_cosine) {
  const at::NoGradGuard no_gradient;
  std::vector<EncodedPair> pairs;
  for (const std::string& text : {first, second})
    pairs.push_back({.source = model.source_ids(model.codecs.source.split_source(text)),
                     .target = {Vocabulary::bos}});
  const Batch batch = make_batch(pairs, {0, 1});
  const Tensor all = model.network->encodings(batch.source, batch.source_lengths, {});
  std::vector<Tensor> vectors;
  for (int64_t i = 0; i < 2; ++i) {
    const auto length = batch.source_lengths[i].item<int64_t>();
    const Tensor vector = model.network->text_vector(all[i].slice(0, 0, length));
    vectors.push_back(is_cosine ? vector / vector.norm() : vector);
  }
  return vectors[0].dot(vectors[1]).item<double>();
}

// Sums of some hundred float64 terms near 1.
constexpr double close = 1e-10;

TEST(Similarity, IsTheSumOfItsParts) {
  const std::vector<std::vector<std::string>> variants = {
      {},
      {"model.text_vector=first"},
      {"model.text_vector=last, maximum"},
      {"model.text_vector=weighted_mean", "model.unit_length=true"},
      {"model.text_vector=mean_by_root", "model.text_depth=6"},
      {"model.text_depth=7", "model.text_activation=tanh", "model.text_cut=4"},
      {"model.normalise_first=false", "model.normalise_input=true", "model.positions=learned",
       "model.bias=none", "model.unit_length=true"},
      {"model.norm=rms", "model.gated=true", "model.positions=rotary", "model.bias=none"}};
  for (const auto& variant : variants) {
    for (const char* measure : {"cosine", "dot"}) {
      SCOPED_TRACE(testing::PrintToString(variant) + measure);
      std::vector<std::string> settings = variant;
      settings.push_back(std::string("model.text_similarity=") + measure);
      const test::SmallModel model = small(settings);
      const SimilarityParts made = explained(model, "a b c d e", "e d a");
      EXPECT_EQ(name_of(made.measure), measure);
      EXPECT_EQ(made.parts.sizes(), (std::vector<int64_t>{3, 5}));
      EXPECT_NEAR(made.parts.sum().item<double>(), made.similarity, close);
      EXPECT_NEAR(padded_similarity(model.model, "a b c d e", "e d a", measure[0] == 'c'),
                  made.similarity, close);
    }
  }
}

TEST(Similarity, OfATextWithItselfIsSymmetric) {
  const test::SmallModel model = small();
  const SimilarityParts made = explained(model, "a b c", "a b c");
  EXPECT_NEAR(made.similarity, 1, close);
  EXPECT_TRUE(made.parts.allclose(made.parts.t(), 0, close));
  const SimilarityParts there = explained(model, "a b", "c d e"),
                        back = explained(model, "c d e", "a b");
  EXPECT_TRUE(there.parts.allclose(back.parts.t(), 0, close));
}

TEST(Similarity, OfSingleTokensIsOnePart) {
  const test::SmallModel model = small();
  const SimilarityParts made = explained(model, "a", "d");
  EXPECT_EQ(made.parts.numel(), 1);
  EXPECT_NEAR(made.parts.item<double>(), made.similarity, close);
  for (const MeasuredFigure& figure : similarity_figures(made))
    EXPECT_NE(why_missing(*figure.row, figure.figure), nullptr) << figure.row->name;
}

// A float32 network, as imported ones are.
TEST(Similarity, IsTheSumOfItsPartsInFloat32) {
  const test::SmallModel model = small({"model.depth=64", "model.layers=6", "model.heads=4"});
  model.model.network->to(at::kFloat);
  const SimilarityParts made = explained(model, "a b c d e", "e d a c");
  EXPECT_NEAR(made.parts.sum().item<double>(), made.similarity, 1e-5);
}

TEST(Similarity, OfLongTextsSharesThePartsOfNeighbours) {
  const MethodChoice choice{.max_passes = 2};
  const test::SmallModel model = small();
  const SimilarityParts made = explained(model, "a b c d e", "e d a", choice);
  EXPECT_NEAR(made.parts.sum().item<double>(), made.similarity, close);
  EXPECT_TRUE(made.parts.select(1, 0).equal(made.parts.select(1, 1)));
  EXPECT_FALSE(made.parts.select(1, 0).equal(made.parts.select(1, 4)));
  EXPECT_EQ(similarity_figures(made, choice).size(), 3U);
}

// Layers add nothing, and all token vectors are orthogonal, except the vectors of b and e.
test::SmallModel planted() {
  test::SmallModel model = small({"model.depth=16", "model.normalise_first=false"});
  const at::NoGradGuard no_gradient;
  for (auto& item : model.model.network->named_parameters()) {
    Tensor& value = item.value();
    const bool is_norm = item.key().find("norm") != std::string::npos;
    value.fill_(is_norm && item.key().ends_with("weight") ? 1 : 0);
    if (value.dim() != 2 || value.size(0) != model.model.source_vocabulary.size()) continue;
    for (int64_t token = 0; token < value.size(0); ++token) value[token][token % 16] = 1;
    const auto id = [&](const char* name) { return model.model.source_vocabulary.id(name); };
    value[id("e")].copy_(value[id("b")]);
  }
  return model;
}

TEST(Similarity, FindsThePlantedPair) {
  const test::SmallModel model = planted();
  const SimilarityParts made = explained(model, "a b", "d e c");
  EXPECT_GT(made.similarity, 0.2);
  EXPECT_EQ(made.parts.argmax().item<int64_t>(), 1 * 2 + 1);  // e, b
  const double pair = made.parts[1][1].item<double>();
  EXPECT_GT(pair, made.similarity);
  for (const MeasuredFigure& figure : similarity_figures(made)) {
    EXPECT_EQ(why_missing(*figure.row, figure.figure), nullptr);
    EXPECT_TRUE(figure.row->passes(figure.figure)) << figure.row->name;
    if (!figure.row->compares) continue;
    EXPECT_GT(figure.figure.value, 2 * figure.figure.other);
  }
}

// Vectors do not read each other, but the mean and the cosine still depend on all tokens.
TEST(Similarity, RanksPairsOfIndependentTokensAsLeavingOutDoes) {
  const test::SmallModel model = planted();
  const auto figures = similarity_figures(explained(model, "a b c d e", "e d a"));
  EXPECT_GT(figures[2].figure.value, 0.3);
}

TEST(Similarity, IsAMapAFileAndAPage) {
  const test::SmallModel model = small();
  const SimilarityParts made = explained(model, "a b c", "d e");
  const Shown shown = shown_similarity(made, evidence_card(similarity_figures(made)));
  ASSERT_EQ(shown.maps.size(), 1U);
  EXPECT_THAT(shown.maps[0].source, testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(shown.maps[0].target, testing::ElementsAre("d", "e"));
  EXPECT_THAT(shown_json(shown), HasSubstr(R"("measure":"cosine","similarity":)"));
  double sum = shown.sum->rest;
  for (const Summand& one : shown.sum->largest) sum += one.part;
  EXPECT_NEAR(sum, made.similarity, close);
  const ExplanationPage page = similarity_page(made, {});
  EXPECT_EQ(page.methods.size(), 1U);
  EXPECT_THAT(page.title, HasSubstr("a b c | d e: cosine"));
}

TEST(Similarity, NamesWhatItCannotExplain) {
  const auto refusal = [](const test::SmallModel& model, const std::string& first,
                          const std::string& second) {
    return test::error_of([&] { explained(model, first, second); });
  };
  EXPECT_THAT(refusal(test::small_model("classifier_mean"), "a", "b"),
              HasSubstr("a model of type classifier has no similarity"));
  EXPECT_THAT(refusal(small({"model.text_similarity=euclidean"}), "a", "b"),
              HasSubstr("by euclidean (model.text_similarity)"));
  EXPECT_THAT(refusal(small(), " ", "b"), HasSubstr("the text is empty"));
  EXPECT_THAT(refusal(small(), "a", ""), HasSubstr("pair is empty"));
  EXPECT_THAT(refusal(small(), "a", "\xff"), HasSubstr("pair: "));
  EXPECT_THAT(refusal(small({"model.recurrent_layers=1"}), "a", "b"), "");
  EXPECT_THAT(refusal(small({"model.experts=3"}), "a b c", "b"), HasSubstr("is not a sum"));
}

}  // namespace similarity_test
}  // namespace attend
