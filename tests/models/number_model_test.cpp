// Tests of models that answer numbers: training, and the unit of their targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <filesystem>

#include "attend/models/classifier.h"
#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/parameters_file.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace number_model_test {

using at::Tensor;
using test::error_of;
using testing::HasSubstr;

const std::vector<Example> examples = {
    {"a b", {"10"}}, {"b", {"30"}}, {"c a a", {"-20"}}, {"c", {"20"}}};

PairModel make(const std::vector<std::string>& settings = {}) {
  ModelConfig config;
  config.type = "classifier";
  for (const std::string& one : settings) assign(config.settings(), one);
  TextConfig text = config.row().text;
  text.target = TargetKind::number;
  torch::manual_seed(3);
  return make_pair_model(text, config, examples);
}

const std::vector<std::string> small = {"model.depth=8", "model.word_dropout=0",
                                        "model.output_dropout=0"};

Batch whole_batch(const PairModel& model) {
  return make_batch(model.encode(examples), {0, 1, 2, 3});
}

TEST(NumberModel, LearnsStandardisedTargets) {
  const PairModel model = make(small);
  EXPECT_EQ(model.answer_kind().name(), "number");
  EXPECT_EQ(model.target_vocabulary.size(), Vocabulary::unknown + 1);
  EXPECT_DOUBLE_EQ(model.text.target_scale.mean, 10);
  const Batch batch = whole_batch(model);
  EXPECT_NEAR(batch.numbers.mean().item<double>(), 0, 1e-6);
  EXPECT_NEAR(batch.numbers.square().mean().item<double>(), 1, 1e-6);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(model.text.target_scale.number(batch.numbers[i].item<double>()),
                target_number(examples[static_cast<size_t>(i)].targets[0]), 1e-5);
  EXPECT_EQ(make_batch({{{4}, {4}}}, {0}).numbers.defined(), false) << "labels are not numbers";
}

TEST(NumberModel, ItsObjectiveIsTheSquaredErrorAndItsStepTheNumber) {
  const PairModel model = make(small);
  const Batch batch = whole_batch(model);
  const Tensor numbers = model.network->start(batch.source, batch.source_lengths, {})
                             ->step(at::full({4}, Vocabulary::bos, at::kLong), false, {})
                             .log_probabilities;
  ASSERT_EQ(numbers.sizes(), (std::vector<int64_t>{4, 1}));
  const double squares = (numbers.squeeze(1) - batch.numbers).square().sum().item<double>();
  EXPECT_NEAR(model.network->objective(batch, {}, 0).item<double>(), squares, 1e-5);
  const Tensor whole = model.network->log_probabilities(batch, {});
  EXPECT_TRUE(at::allclose(whole.squeeze(2), numbers.to(at::kDouble), 1e-6, 1e-6));
}

TEST(NumberModel, GradientsAreDifferences) {
  for (const char* pooling : {"sum", "fixed_mlp", "class"}) {
    SCOPED_TRACE(pooling);
    const PairModel model =
        make({"model.depth=4", "model.heads=2", "model.layers=1", "model.feed_forward=5",
              "model.attention_depth=3", std::string("model.pooling=") + pooling});
    model.network->to(at::kDouble);
    Batch batch = whole_batch(model);
    batch.numbers = batch.numbers.to(at::kDouble);
    reference::expect_parameter_slopes(*model.network,
                                       [&] { return model.network->objective(batch, {}, 0); });
  }
}

// A mean of vectors could not: no number for "a" fits both sources with an "a".
TEST(NumberModel, LearnsAFewExamplesByHeart) {
  std::vector<std::string> settings = small;
  settings.insert(settings.end(), {"model.recurrent_layers=1", "model.dropout=0"});
  const PairModel model = make(settings);
  torch::optim::Adam adam(model.network->parameters(), torch::optim::AdamOptions(0.05));
  const Batch batch = whole_batch(model);
  double error = 0;
  for (int step = 0; step < 300; ++step) {
    adam.zero_grad();
    const Tensor objective = model.network->objective(batch, {}, 0);
    objective.backward();
    adam.step();
    error = objective.item<double>();
  }
  EXPECT_LT(error, 1e-3);
}

TEST(NumberModel, KeepsTheUnitInItsFolder) {
  const test::TemporaryFolder folder;
  const PairModel model = make(small);
  save_description(model, folder.path());
  save_weights(*model.network, folder / "weights.safetensors");
  const PairModel loaded = load_pair_model(folder.path());
  EXPECT_EQ(loaded.answer_kind().name(), "number");
  EXPECT_EQ(loaded.text.target_scale, model.text.target_scale);
  const Batch batch = whole_batch(model);
  model.network->eval();
  EXPECT_TRUE(at::equal(model.network->log_probabilities(batch, {}),
                        loaded.network->log_probabilities(batch, {})));
}

TEST(NumberModel, TellsWhatAnswersNoNumbers) {
  TextConfig text;
  text.target = TargetKind::number;
  const auto reason = [&](const char* type) {
    ModelConfig config;
    config.type = type;
    return error_of([&] { make_pair_model(text, config, examples); });
  };
  text.target_units = "line";
  EXPECT_THAT(reason("transformer"), HasSubstr("model.type = transformer does not answer; take "
                                               "classifier or vit or set"));
  EXPECT_THAT(reason("lm"), HasSubstr("take classifier or vit or set"));
  text.target = TargetKind::span;
  EXPECT_EQ(reason("classifier"),
            "data.target is span, which model.type = classifier does not answer; take reader");
  text.target = TargetKind::number;
  text.target_units = "char";
  EXPECT_THAT(reason("classifier"), HasSubstr("one whole line"));
  const PairModel model = make(small);
  EXPECT_THAT(error_of([&] {
                model.encode({Example{"a", {"many"}}});
              }),
              HasSubstr("'many' is not a finite number"));
}

}  // namespace number_model_test
}  // namespace attend
