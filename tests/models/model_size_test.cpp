#include "attend/models/model_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/base/memory.h"
#include "attend/nn/mechanism_table.h"
#include "attend/nn/without_storage.h"
#include "attend/ops/scores.h"
#include "tests/models/networks.h"
#include "tests/support/files.h"

namespace attend {
namespace model_size_test {

using testing::HasSubstr;
using testing::StartsWith;

class EveryOutline : public testing::TestWithParam<test::SomeNetwork> {};

TEST_P(EveryOutline, HasTheParametersOfTheNetworkAndNoneOfTheirValues) {
  const ModelConfig config = GetParam().config();
  torch::manual_seed(1);
  const auto outline = [&] {
    const WithoutStorage without_storage;
    return config.chosen().make_network(GetParam().source, GetParam().target);
  }();
  // Making an outline does not change the random numbers of the network.
  const auto network = config.chosen().make_network(GetParam().source, GetParam().target);
  torch::manual_seed(1);
  const auto again = config.chosen().make_network(GetParam().source, GetParam().target);
  const auto described = outline->named_parameters(), there = network->named_parameters();
  ASSERT_EQ(described.keys(), there.keys());
  for (const auto& item : there) {
    EXPECT_EQ(described[item.key()].sizes(), item.value().sizes()) << item.key();
    EXPECT_EQ(described[item.key()].scalar_type(), item.value().scalar_type());
    EXPECT_EQ(described[item.key()].requires_grad(), item.value().requires_grad());
    EXPECT_TRUE(described[item.key()].is_meta()) << item.key();
    EXPECT_TRUE(again->named_parameters()[item.key()].equal(item.value())) << item.key();
  }
  EXPECT_TRUE(outline->buffers().empty());
}

INSTANTIATE_TEST_SUITE_P(Models, EveryOutline, testing::ValuesIn(test::some_networks()),
                         [](const auto& info) { return info.param.name; });

// Everything that constructors call must also work without storage.
TEST(Outline, OfEveryScoreAndMechanism) {
  const WithoutStorage without_storage;
  const auto make = [](const std::string& type, const std::string& setting) {
    ModelConfig config;
    assign({config.type_setting()}, "model.type=" + type);
    assign(config.settings(), setting);
    try {
      config.chosen().make_network({12}, 12);
      return 1;
    } catch (const Error&) {
      return 0;  // not available for this type
    }
  };
  int made = 0;
  for (const std::string type : {"seq2seq", "transformer", "lm"}) {
    for (const Mechanism& row : mechanism_table())
      made += make(type, fmt::format("model.mechanism={}", row.name));
    for (const ScoreRow& row : score_table())
      made += make(type, fmt::format("model.score={}", row.name));
  }
  EXPECT_GT(made, 60);
}

PairModel model_with(const std::vector<std::string>& settings) {
  PairModel model;
  assign({model.config.type_setting()}, settings[0]);
  for (size_t i = 1; i < settings.size(); ++i) assign(model.config.settings(), settings[i]);
  model.source_vocabulary = model.target_vocabulary = Vocabulary::build({{"a"}}, 1);
  return model;
}

// Nothing is allocated here: the largest model would take 280 TB.
TEST(ModelSize, NamesTheSettingThatAsksForMost) {
  const auto named = [](const std::vector<std::string>& settings) {
    return largest_part(model_with(settings));
  };
  EXPECT_THAT(named({"model.type=transformer", "model.heads=1", "model.bias=grid:65536x65536"}),
              // Four layers over the source and four over the target; 4 bytes per number.
              StartsWith("model.bias = 'grid:65536x65536' asks for 549.7 GB of them"));
  EXPECT_THAT(named({"model.type=lm", "model.context=1048576"}),
              StartsWith("model.context = 1048576 asks for 0.5 GB"));
  EXPECT_THAT(named({"model.type=lm", "model.bias=relative_keys:65536", "model.depth=1024"}),
              StartsWith("model.bias = 'relative_keys:65536' asks for"));
  EXPECT_THAT(named({"model.type=transformer", "model.feed_forward=262144", "model.depth=65536"}),
              HasSubstr("model.depth = 65536"));
  EXPECT_THAT(named({"model.type=seq2seq", "model.hidden=65536"}),
              StartsWith("model.hidden = 65536 asks for"));
  EXPECT_THAT(named({"model.type=vit"}), HasSubstr("the vocabularies"));
}

TEST(ModelSize, BoundsWhatIsTrained) {
  EXPECT_NO_THROW(check_memory(model_with({"model.type=seq2seq"})));
  const std::string refusal = test::error_of([] {
    check_memory(model_with({"model.type=transformer", "model.bias=grid:65536x65536"}));
  });
  EXPECT_THAT(refusal, HasSubstr("model.bias = 'grid:65536x65536' asks for 2199.0 GB"));
  // Weight, average, two moments, decay, two gradients per replica, and a checkpoint being read.
  EXPECT_THAT(refusal, HasSubstr("training 15 times that"));
  EXPECT_THAT(
      test::error_of([] {
        check_memory(model_with({"model.type=transformer", "model.bias=grid:65536x65536"}), 4);
      }),
      HasSubstr("training 21 times that"));
  EXPECT_NO_THROW(check_copies(model_with({"model.type=seq2seq"}), 2.5, "import"));
  EXPECT_THAT(test::error_of([] {
                check_copies(model_with({"model.type=transformer", "model.bias=grid:65536x65536"}),
                             2.5, "import");
              }),
              testing::HasSubstr("import 2.5 times that"));
  EXPECT_GT(memory_limit(), 1 << 28);
  // The processes of one machine share its memory.
  EXPECT_THAT(
      test::error_of([] { check_memory(model_with({"model.type=seq2seq"}), 1, 1'000'000); }),
      AllOf(HasSubstr("training 15 times that in each of 1000000 processes; each may use"),
            HasSubstr("fewer replicas or processes")));
}

}  // namespace model_size_test
}  // namespace attend
