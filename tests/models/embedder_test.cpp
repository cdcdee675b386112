#include "attend/models/embedder.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <cmath>

#include "attend/text/vocabulary.h"
#include "tests/support/files.h"

namespace attend {
namespace embedder_test {

using at::Tensor;
using testing::HasSubstr;

EmbedderConfig small() {
  EmbedderConfig config;
  config.depth = 20;
  config.heads = 2;
  config.feed_forward = 21;
  config.layers = 2;
  config.positions = Positions::learned;
  config.maximum_source_length = 16;
  config.self.bias = MechanismSettings::no_bias;
  config.activation = HiddenActivation::gelu_tanh;
  config.normalise_first = false;
  config.normalise_input = true;
  config.epsilon = 1e-3;
  return config;
}

std::shared_ptr<Embedder> make(const EmbedderConfig& config) {
  torch::manual_seed(3);
  auto network = std::make_shared<Embedder>(config, SourceShape(12));
  network->eval();
  return network;
}

// Sums of some tens of float32 terms near 1.
TEST(Embedder, GivesTheSameByPackedLayersAndBesidePadding) {
  const at::NoGradGuard no_gradient;
  const auto network = make(small());
  const Tensor source = at::randint(Vocabulary::unknown + 1, 12, {2, 7}, at::kLong);
  const Tensor lengths = at::tensor({7, 4}, at::kLong);
  const Tensor whole = network->encodings(source, lengths, {});
  ASSERT_TRUE(network->pack(WeightType::float32));
  EXPECT_LT((network->encodings(source, lengths, {})[0] - whole[0]).abs().max().item<float>(),
            1e-5);
  const Tensor alone =
      network->encodings(source.slice(0, 1).slice(1, 0, 4), lengths.slice(0, 1), {});
  EXPECT_LT((alone[0] - whole[1].slice(0, 0, 4)).abs().max().item<float>(), 1e-5);
}

TEST(Embedder, MakesAVectorOfATextAsItsSettingsSay) {
  const Tensor vectors = at::randn({3, 20});
  EmbedderConfig config = small();
  EXPECT_TRUE(make(config)->text_vector(vectors).allclose(vectors.mean(0)));
  config.unit_length = true;
  const Tensor mean = vectors.mean(0);
  EXPECT_TRUE(make(config)->text_vector(vectors).allclose(mean / mean.square().sum().sqrt()));
  config.text_vector = "first";
  config.unit_length = false;
  EXPECT_TRUE(make(config)->text_vector(vectors).equal(vectors[0]));
}

TEST(Embedder, PoolsInEachWayAndInSeveral) {
  const Tensor vectors = at::randn({3, 20});
  const auto pooled = [&](const std::string& ways) {
    EmbedderConfig config = small();
    config.text_vector = ways;
    return make(config)->text_vector(vectors);
  };
  EXPECT_TRUE(pooled("last").equal(vectors[2]));
  EXPECT_TRUE(pooled("maximum").equal(std::get<0>(vectors.max(0))));
  EXPECT_TRUE(pooled("weighted_mean")
                  .allclose((vectors[0] + 2 * vectors[1] + 3 * vectors[2]) / 6, 0, 1e-6));
  EXPECT_TRUE(pooled("mean_by_root").allclose(vectors.sum(0) / std::sqrt(3), 0, 1e-6));
  EXPECT_TRUE(pooled("last, first,mean").equal(at::cat({vectors[2], vectors[0], vectors.mean(0)})));
  EmbedderConfig config = small();
  config.text_vector = "first, last";
  config.text_cut = 40;
  config.check();
  config.text_cut = 41;
  EXPECT_THAT(test::error_of([&] { config.check(); }), HasSubstr("has 40 numbers"));
  config.text_vector = "first, median";
  EXPECT_THAT(test::error_of([&] { config.check(); }), HasSubstr("median"));
}

TEST(Embedder, NormalisesTheTextVectorBeforeItsLength) {
  const Tensor vectors = at::randn({3, 20});
  EmbedderConfig config = small();
  config.text_norm = true;
  const Tensor mean = vectors.mean(0);
  const Tensor wanted = at::layer_norm(mean, {20}, {}, {}, 1e-5);
  EXPECT_TRUE(make(config)->text_vector(vectors).allclose(wanted, 0, 1e-6));
  config.unit_length = true;
  EXPECT_TRUE(make(config)->text_vector(vectors).allclose(wanted / wanted.norm(), 0, 1e-6));
}

TEST(Embedder, LeavesTheFirstTokensOut) {
  const Tensor vectors = at::randn({4, 20});
  const auto rest = [&](const std::string& way) {
    EmbedderConfig config = small();
    config.text_vector = way;
    return make(config)->text_vector_after(vectors, 2);
  };
  EXPECT_TRUE(rest("mean").allclose((vectors[2] + vectors[3]) / 2, 0, 1e-6));
  EXPECT_TRUE(rest("first").equal(vectors[2]));
  EXPECT_TRUE(rest("last").equal(vectors[3]));
  EXPECT_TRUE(rest("maximum").equal(at::maximum(vectors[2], vectors[3])));
  EXPECT_TRUE(rest("mean_by_root").allclose((vectors[2] + vectors[3]) / std::sqrt(2), 0, 1e-6));
  // Weights count the tokens that are left out.
  EXPECT_TRUE(rest("weighted_mean").allclose((3 * vectors[2] + 4 * vectors[3]) / 7, 0, 1e-6));
}

TEST(TextPrompts, AreFoundByName) {
  const TextPrompts prompts =
      read_text_prompts("model", R"({"query": "find: ", "plain": ""})", "query");
  EXPECT_EQ(prompts.text(), "find: ");
  EXPECT_EQ(prompts.text("plain"), "");
  EXPECT_THAT(test::error_of([&] { (void)prompts.text("quary"); }), HasSubstr("query"));
  EXPECT_EQ(TextPrompts{}.text(), "");
  EXPECT_THAT(test::error_of([] { (void)TextPrompts{}.text("query"); }),
              HasSubstr("no named prompts"));
  for (const char* text : {"[]", R"({"a": 1})", R"({"": "a"})", "{", "1"})
    EXPECT_THAT(test::error_of([&] { read_text_prompts("model", text, ""); }),
                HasSubstr("write a JSON object"))
        << text;
  EXPECT_THAT(test::error_of([] { read_text_prompts("model", R"({"a": "b"})", "c"); }),
              HasSubstr("model.default_prompt is 'c', which model.prompts lacks"));
}

TEST(Embedder, SaysWhatToDoWhereItIsAskedForMore) {
  const auto network = make(small());
  EXPECT_THAT(test::error_of([&] { network->objective({}, {}, 0); }), HasSubstr("--init"));
  EXPECT_THAT(test::error_of([&] { network->start({}, {}, {}); }), HasSubstr("attend embed"));
  EXPECT_THAT(test::error_of([] {
                Embedder(small(), ImageForm{4, 3, 4});
              }),
              HasSubstr("reads only texts"));
  EmbedderConfig none = small();
  none.layers = 0;
  EXPECT_THAT(test::error_of([&] { none.check(); }), HasSubstr("model.layers is 0"));
}

}  // namespace embedder_test
}  // namespace attend
