// Tests of models that answer any number of labels: loss, probabilities and stored settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/parameters_file.h"
#include "tests/nn/module_gradients.h"
#include "tests/support/files.h"

namespace attend {
namespace label_set_model_test {

using at::Tensor;
using test::error_of;
using testing::HasSubstr;

const std::vector<Example> examples = {
    {"a b", {"red; big cat"}}, {"b", {""}}, {"c a a", {"old;red;big cat"}}, {"c", {"old"}}};

PairModel make(const std::vector<std::string>& settings = {}, const std::string& separator = ";") {
  ModelConfig config;
  config.type = "classifier";
  for (const char* small : {"model.depth=4", "model.heads=2", "model.layers=1",
                            "model.feed_forward=5", "model.attention_depth=3"})
    assign(config.settings(), small);
  for (const std::string& one : settings) assign(config.settings(), one);
  TextConfig text = config.row().text;
  text.target = TargetKind::labels;
  text.label_separator = separator;
  torch::manual_seed(3);
  PairModel model = make_pair_model(text, config, examples);
  model.network->to(at::kDouble);
  model.network->eval();
  return model;
}

Batch whole_batch(const PairModel& model) {
  return make_batch(model.encode(examples), {0, 1, 2, 3});
}

// [examples, labels], by the network's step.
Tensor label_log_probabilities(const PairModel& model, const Batch& batch) {
  return model.network->start(batch.source, batch.source_lengths, {})
      ->step(at::full({4}, Vocabulary::bos, at::kLong), false, {})
      .log_probabilities.slice(1, Vocabulary::unknown + 1);
}

// Sum over the labels of -log p or -log (1 - p), per example, in plain loops.
std::vector<double> losses(const PairModel& model, const Batch& batch) {
  const Tensor logarithms = label_log_probabilities(model, batch);
  const std::vector<std::set<std::string>> wanted = {
      {"red", "big cat"}, {}, {"old", "red", "big cat"}, {"old"}};
  std::vector<double> sums;
  sums.reserve(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    double sum = 0;
    for (int64_t label = 0; label < logarithms.size(1); ++label) {
      const double p = std::exp(logarithms[static_cast<int64_t>(i)][label].item<double>());
      const std::string name = model.target_vocabulary.token(Vocabulary::unknown + 1 + label);
      sum -= std::log(wanted[i].contains(name) ? p : 1 - p);
    }
    sums.push_back(sum);
  }
  return sums;
}

TEST(LabelSetModel, ItsObjectiveIsTheBinaryCrossEntropyOfEachLabel) {
  const PairModel model = make();
  EXPECT_EQ(model.answer_kind().name(), "set of labels");
  EXPECT_EQ(model.target_vocabulary.size(), Vocabulary::unknown + 1 + 3);
  const Batch batch = whole_batch(model);
  ASSERT_EQ(batch.labels.sizes(), (std::vector<int64_t>{4, 3}));
  double sum = 0;
  for (const double loss : losses(model, batch)) sum += loss;
  EXPECT_NEAR(model.network->objective(batch, {}, 0).item<double>(), sum, 1e-9);
  EXPECT_EQ(model.answer_kind().loss_terms(model.encode(examples)), 4);
}

TEST(LabelSetModel, GradientsAreDifferences) {
  for (const char* pooling : {"sum", "fixed_mlp", "class"}) {
    SCOPED_TRACE(pooling);
    const PairModel model = make({std::string("model.pooling=") + pooling});
    const Batch batch = whole_batch(model);
    reference::expect_parameter_slopes(*model.network,
                                       [&] { return model.network->objective(batch, {}, 0); });
  }
}

TEST(LabelSetModel, ATargetHasTheProbabilityOfTheWholeSet) {
  const PairModel model = make();
  const Batch batch = whole_batch(model);
  const Tensor whole = model.network->log_probabilities(batch, {});
  const std::vector<double> wanted = losses(model, batch);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(whole[i][0][batch.target[i][0]].item<double>(), -wanted[static_cast<size_t>(i)],
                1e-9);
}

// Each position is the question whether its label is one of the source's.
TEST(LabelSetModel, LabelsOfATargetHaveTheirOwnDistributions) {
  const PairModel model = make();
  Batch batch = whole_batch(model);
  batch.labels = Tensor();
  batch.target = at::tensor({4, 6}, at::kLong).repeat({4, 1});
  const Tensor found = model.network->log_probabilities(batch, {}).exp();
  const Tensor labels = label_log_probabilities(model, batch).exp();
  EXPECT_TRUE(at::allclose(found.sum(2), at::ones({4, 2}, at::kDouble)));
  EXPECT_TRUE(at::allclose(found.select(1, 0).select(1, 4), labels.select(1, 0)));
  EXPECT_TRUE(at::allclose(found.select(1, 1).select(1, 6), labels.select(1, 2)));
}

TEST(LabelSetModel, KeepsItsSeparatorInItsFolder) {
  const test::TemporaryFolder folder;
  const PairModel model = make();
  model.network->to(at::kFloat);
  save_description(model, folder.path());
  save_weights(*model.network, folder / "weights.safetensors");
  const PairModel loaded = load_pair_model(folder.path());
  EXPECT_EQ(loaded.answer_kind().name(), "set of labels");
  EXPECT_EQ(loaded.text.label_separator, ";");
  const Batch batch = whole_batch(loaded);
  EXPECT_TRUE(at::equal(model.network->log_probabilities(batch, {}),
                        loaded.network->log_probabilities(batch, {})));
}

TEST(LabelSetModel, ReportsWhatDoesNotFit) {
  TextConfig text;
  text.target = TargetKind::labels;
  const auto reason = [&](const char* type) {
    ModelConfig config;
    config.type = type;
    return error_of([&] { make_pair_model(text, config, examples); });
  };
  text.target_units = "line";
  EXPECT_THAT(reason("tagger"), HasSubstr("data.target is labels, which model.type = tagger does "
                                          "not answer; take classifier or vit or set"));
  text.target_units = "char";
  EXPECT_THAT(reason("classifier"), HasSubstr("which data.label_separator separates"));
  EXPECT_THAT(error_of([] { make({}, ""); }), HasSubstr("data.label_separator is empty"));
}

}  // namespace label_set_model_test
}  // namespace attend
