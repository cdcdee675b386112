// Tests of a type of model from outside the library: registered, trained and used.
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <set>
#include <string>

#include "attend/base/error.h"
#include "attend/explain/methods.h"
#include "attend/explain/weight_tests.h"
#include "attend/inference/model.h"
#include "attend/models/model_type.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_input.h"
#include "attend/nn/token_loss.h"
#include "attend/runs/training.h"
#include "attend/text/vocabulary.h"
#include "tests/runs/reader_network.h"
#include "tests/support/files.h"
#include "tests/support/thread_world.h"

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

// Answers each letter with its sound: token i of the answer depends on token i of the source.
class Speller : public PairNetwork {
 public:
  Speller(const SpellerConfig& config, const SourceShape& source, int64_t target_tokens) {
    letters_ = register_module("letters", torch::nn::Embedding(source.tokens(), config.depth));
    sounds_ = register_module("sounds", torch::nn::Linear(config.depth, target_tokens));
  }

  Tensor objective(const Batch& batch, const Pass&, double smoothing) override {
    const int64_t steps = batch.target.size(1);
    // The position after the source, which is padding, answers with the end.
    const Tensor padded = torch::constant_pad_nd(batch.source, {0, steps}, Vocabulary::padding);
    const Tensor logits = sounds_->forward(letters_->forward(padded.slice(1, 0, steps)));
    return at::cross_entropy_loss(logits.flatten(0, 1), batch.target.flatten(), {},
                                  at::Reduction::Sum, Vocabulary::padding, smoothing);
  }

  std::unique_ptr<DecodingState> start(const Tensor& source, const Tensor&, const Pass&) override {
    return std::make_unique<State>(*this, source);
  }

  bool attends() const override { return false; }

 private:
  struct State : DecodingState {
    State(Speller& its_network, const Tensor& its_source)
        : network(its_network),
          source(torch::constant_pad_nd(its_source, {0, 100}, Vocabulary::padding)) {}

    StepResult step(const Tensor&, bool, const Pass&) override {
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
         const TargetShape& target) -> std::shared_ptr<PairNetwork> {
        return std::make_shared<Speller>(config, source, target.tokens);
      });
}

// All syllables of consonant, vowel and consonant; letters are answered by letters for sounds.
std::string syllables() {
  std::string pairs;
  for (const char a : std::string("bdfg"))
    for (const char b : std::string("aeiou"))
      for (const char c : std::string("bdfg"))
        pairs +=
            fmt::format("{}{}{}\t{} {} {}\n", a, b, c, char(a - 32), char(b - 32), char(c - 32));
  return pairs;
}

// Methods that refuse a subject; all others give scores.
std::set<std::string> refused_methods(const Subject& subject) {
  const NetworkTrace trace = trace_network(subject.network(), subject.batch, {.gradients = true});
  std::set<std::string> refused;
  for (const MethodRow& row : method_table()) {
    if (!refusal_reason(row, subject, trace).empty()) {
      refused.insert(row.name);
      continue;
    }
    const Tensor scores = method_scores(row, subject, trace);
    EXPECT_EQ(scores.sizes(), (at::IntArrayRef{subject.target_length(), subject.source_length()}))
        << row.name;
    EXPECT_TRUE(at::isfinite(scores).all().item<bool>()) << row.name;
    EXPECT_GT(scores.abs().max().item<double>(), 0) << row.name;
  }
  return refused;
}

TEST(OwnType, IsTrainedAndAnswers) {
  const ModelType row = {
      .name = "speller", .summary = "a sound a letter", .config = speller_config};
  register_model_type(row);
  EXPECT_THAT([&] { register_model_type(row); }, ThrowsMessage<Error>(HasSubstr("exists already")));
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
  const Subject subject = answered_subject(model, "dab", {});
  const std::set<std::string> refused = refused_methods(subject);
  EXPECT_EQ(refused.size(), method_table().size() - 1);
  EXPECT_EQ(refused.count("occlusion"), 0) << "the type gives neither vectors nor attention";
  EXPECT_THAT([&] { method_scores(find_method("gradient"), subject); },
              ThrowsMessage<Error>(HasSubstr("do not report the vectors")));
  EXPECT_THAT([&] { model.embed({"dab"}); }, ThrowsMessage<Error>(HasSubstr("has no encoder")));
  EXPECT_THAT([&] { model.classify({"dab"}); }, ThrowsMessage<Error>(HasSubstr("has no labels")));
}

TEST(OwnType, ThatReportsToItsPassIsExplained) {
  register_model_type(
      {.name = "listener", .summary = "a sound a letter", .config = test::reader_config});
  const test::TemporaryFolder folder;
  TrainOptions options;
  options.data = options.valid = folder.write("pairs.tsv", syllables());
  options.out = folder / "model";
  options.assignments = {"model.type=listener",      "train.steps=400",      "train.batch=20",
                         "train.learning_rate=0.02", "train.warmup_steps=5", "train.replicas=2"};
  EXPECT_EQ(train_model(options).outcome.best_metric, 0) << "no token is wrong";
  const Model model(options.out, {.threads = 2});
  EXPECT_EQ(model.answer({"dab"}, {.beam = 3})[0].best().text, "D A B");
  const Subject subject = answered_subject(model, "dab", {});
  EXPECT_EQ(refused_methods(subject),
            (std::set<std::string>{"rollout", "flow", "value_zeroing", "alti", "relevance",
                                   "decompx", "grad_cam"}))
      << "it has no layers and reads no frames";
  const Tensor weights = method_scores(find_method("attention"), subject);
  EXPECT_TRUE(at::equal(weights.slice(0, 0, 3).argmax(1), at::arange(3))) << weights;
  EXPECT_GT(test_weights(subject, {.permutations = 2, .steps = 2}).tokens, 0);
}

// The objective of `network` and the gradients of its weights.
std::vector<Tensor> learned(PairNetwork& network, const Batch& batch, Communicator* world) {
  const Pass pass{.generator = at::make_generator<at::CPUGeneratorImpl>(7), .world = world};
  const Tensor objective = network.objective(batch, pass, 0.1);
  objective.backward();
  std::vector<Tensor> results = {objective.detach()};
  for (const Tensor& weight : network.parameters())
    results.push_back(weight.grad().defined() ? weight.grad() : at::zeros_like(weight));
  return results;
}

TEST(OwnType, SharesItsSequences) {
  const Batch batch = make_batch({{{4, 5, 6, 7, 8}, {5, 6, 7, 4}}, {{9, 4}, {8}}}, {0, 1});
  const auto make = [] {
    torch::manual_seed(5);
    auto network = std::make_shared<test::Reader>(test::ReaderConfig(), SourceShape(12), 12);
    network->to(at::kDouble);
    return network;
  };
  EXPECT_EQ(test::reader_config()->not_shared_reason(), "");
  const std::vector<Tensor> wanted = learned(*make(), batch, nullptr);
  constexpr int64_t ranks = 3;
  std::vector<std::shared_ptr<test::Reader>> copies;
  for (int64_t r = 0; r < ranks; ++r) copies.push_back(make());
  std::vector<std::vector<Tensor>> parts(copies.size());
  ThreadWorld(ranks).run([&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    parts[rank] = learned(*copies[rank], batch, &world);
  });
  for (size_t i = 0; i < wanted.size(); ++i)
    // Sums of some hundred products in double precision, in another order.
    EXPECT_TRUE(at::allclose(parts[0][i] + parts[1][i] + parts[2][i], wanted[i], 1e-10, 1e-12))
        << i;
}

TEST(OwnType, NamesThatAreNoneAreRefusedWithThoseThatAre) {
  EXPECT_THAT([] { model_type("speler"); }, ThrowsMessage<Error>(testing::AllOf(
                                                HasSubstr("'speler'"), HasSubstr("transformer"))));
}

}  // namespace own_type_test
}  // namespace attend
