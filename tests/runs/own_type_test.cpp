// A type of model that the library does not know: registered, trained and asked, with nothing of
// the library touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "attend/base/error.h"
#include "attend/data/vocabulary.h"
#include "attend/inference/model.h"
#include "attend/models/model_type.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_input.h"
#include "attend/nn/token_loss.h"
#include "attend/runs/training.h"
#include "tests/support/files.h"

namespace attend {
namespace own_type_test {

using at::Tensor;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct SpellerConfig {
  int64_t depth = 8;
  int64_t maximum_source_length = 4;

  Settings settings() { return {{"model.depth", &depth, "depth of a letter's vector", 1, 1024}}; }
  void check() const {}
};

// Answers each letter with its sound: token i of the answer is read off token i of the source.
class Speller : public PairNetwork {
 public:
  Speller(const SpellerConfig& config, const SourceShape& source, int64_t target_tokens) {
    letters_ = register_module("letters", torch::nn::Embedding(source.tokens, config.depth));
    sounds_ = register_module("sounds", torch::nn::Linear(config.depth, target_tokens));
  }

  Tensor objective(const Batch& batch, const DropoutGenerator&, double smoothing) override {
    const int64_t steps = batch.target.size(1);
    // The place behind the source, which is padding, answers with the end.
    const Tensor padded = torch::constant_pad_nd(batch.source, {0, steps}, Vocabulary::padding);
    const Tensor logits = sounds_->forward(letters_->forward(padded.slice(1, 0, steps)));
    return at::cross_entropy_loss(logits.flatten(0, 1), batch.target.flatten(), {},
                                  at::Reduction::Sum, Vocabulary::padding, smoothing);
  }

  std::unique_ptr<DecodingState> start(const Tensor& source, const Tensor&) override {
    return std::make_unique<State>(*this, source);
  }

  bool attends() const override { return false; }

 private:
  struct State : DecodingState {
    State(Speller& its_network, const Tensor& its_source)
        : network(its_network),
          source(torch::constant_pad_nd(its_source, {0, 100}, Vocabulary::padding)) {}

    StepResult step(const Tensor&, bool) override {
      const Tensor letter = network.letters_->forward(source.select(1, place++));
      return {network.sounds_->forward(letter).log_softmax(1), {}};
    }

    void reorder(const Tensor& rows, bool same_sources) override {
      if (!same_sources) source = source.index_select(0, rows);
    }

    Speller& network;
    Tensor source;
    int64_t place = 0;
  };

  torch::nn::Embedding letters_{nullptr};
  torch::nn::Linear sounds_{nullptr};
};

std::unique_ptr<NetworkConfig> speller_config() {
  return std::make_unique<NetworkConfigOf<SpellerConfig>>(
      [](const SpellerConfig& config, const SourceShape& source,
         int64_t target_tokens) -> std::shared_ptr<PairNetwork> {
        return std::make_shared<Speller>(config, source, target_tokens);
      });
}

TEST(OwnType, IsTrainedAndAnswers) {
  const ModelType row = {
      .name = "speller", .summary = "a sound a letter", .config = speller_config};
  register_model_type(row);
  EXPECT_THAT([&] { register_model_type(row); }, ThrowsMessage<Error>(HasSubstr("there already")));
  const test::TemporaryFolder folder;
  std::string pairs;
  for (const char a : std::string("bdfg"))
    for (const char b : std::string("aeiou"))
      pairs += fmt::format("{0}{1}{0}\t{2} {3} {2}\n", a, b, char(a - 32), char(b - 32));
  TrainOptions options;
  options.data = options.valid = folder.write("pairs.tsv", pairs);
  options.out = folder / "model";
  options.assignments = {"model.type=speller",   "model.depth=12",
                         "train.replicas=2",     "train.steps=150",
                         "train.batch=10",       "train.learning_rate=0.05",
                         "train.warmup_steps=5", "train.weight_average=0.5"};
  EXPECT_EQ(train_model(options).outcome.best_metric, 0) << "no token is wrong";
  const Model model(options.out, {.threads = 2});
  EXPECT_EQ(model.type(), "speller");
  EXPECT_EQ(model.answer({"dab"}, {.beam = 3})[0].best().text, "D A B");
  EXPECT_FALSE(model.attends());
  EXPECT_TRUE(model.answer({"dabadab"})[0].truncated);
  EXPECT_THAT([&] { model.embed({"dab"}); }, ThrowsMessage<Error>(HasSubstr("has no encoder")));
  EXPECT_THAT([&] { model.classify({"dab"}); }, ThrowsMessage<Error>(HasSubstr("has no labels")));
}

TEST(OwnType, NamesThatAreNoneAreRefusedWithThoseThatAre) {
  EXPECT_THAT([] { model_type("speler"); }, ThrowsMessage<Error>(testing::AllOf(
                                                HasSubstr("'speler'"), HasSubstr("transformer"))));
}

}  // namespace own_type_test
}  // namespace attend
