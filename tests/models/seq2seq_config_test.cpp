#include "attend/models/seq2seq_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "attend/models/seq2seq.h"
#include "attend/nn/mechanism_table.h"

namespace attend {
namespace seq2seq_config_test {

using testing::ElementsAre;
using testing::HasSubstr;

// The error message for a configuration of these lines; empty if it is valid.
std::string refusal(const std::vector<std::string>& lines) {
  Seq2SeqConfig config;
  try {
    for (const std::string& line : lines) assign(config.settings(), line);
    config.check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class EveryMechanism : public testing::TestWithParam<std::string> {};

std::vector<std::string> mechanism_names() {
  std::vector<std::string> names;
  for (const Mechanism& row : mechanism_table()) names.emplace_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryMechanism, testing::ValuesIn(mechanism_names()),
                         [](const auto& info) { return info.param; });

// A row is trained and decoded (seq2seq_test), or refused before data is read.
TEST_P(EveryMechanism, IsTakenOrRefusedWithAReason) {
  const Mechanism& row = mechanism(GetParam());
  const std::string found = refusal({"model.mechanism=" + GetParam()});
  if (row.refusal.empty()) {
    EXPECT_EQ(found, "");
  } else {
    EXPECT_THAT(found, HasSubstr("model.mechanism is " + GetParam() + ": "));
    EXPECT_THAT(found, HasSubstr("take "));
  }
}

TEST(Seq2SeqConfig, FilesFromBeforeMeanWhatTheyDid) {
  Seq2SeqConfig config;
  parse_toml(config.settings(), "[model]\nscore = \"additive\"\nhidden = 8\n", "config.toml");
  config.check();
  const AttentionChoices choices = config.choices();
  EXPECT_EQ(choices.score, "additive");
  EXPECT_EQ(choices.scope, "all");
  EXPECT_EQ(choices.bias, "");
  EXPECT_EQ(choices.normaliser, "softmax");
  EXPECT_THAT(config.query_parts(), ElementsAre(QueryVector::previous_state));
  parse_toml(config.settings(), "[model]\nscore = \"dot\"\n", "config.toml");
  EXPECT_EQ(config.choices().score, "dot");
  EXPECT_THAT(config.query_parts(), ElementsAre(QueryVector::previous_state));
  parse_toml(config.settings(), "[model]\nscore = \"none\"\n", "config.toml");
  EXPECT_FALSE(config.attends());
  config.check();
}

TEST(Seq2SeqConfig, ReplacesChoicesOfTheMechanism) {
  Seq2SeqConfig config;
  config.mechanism = "local_p";
  config.score = "cosine";
  config.scope = "around:2";
  EXPECT_EQ(config.choices().score, "cosine");
  EXPECT_EQ(config.choices().scope, "around:2");
  EXPECT_EQ(config.choices().bias, "gaussian");
  config.scope = "all";
  config.bias = "none";
  EXPECT_EQ(config.choices().bias, "");
  config.check();
}

TEST(Seq2SeqConfig, ReadsTheParts) {
  Seq2SeqConfig config;
  config.query = " state + context+token ";
  EXPECT_THAT(config.query_parts(),
              ElementsAre(QueryVector::state, QueryVector::context, QueryVector::token));
  config.embedding = 3;
  config.hidden = 8;
  EXPECT_EQ(config.attention_sizes().query_depth, 8 + 8 + 3);
  for (const char* bad : {"+", "state+", "state++token", "states", "state+state"}) {
    config.query = bad;
    EXPECT_THROW(config.query_parts(), Error) << bad;
  }
}

TEST(Seq2SeqConfig, RefusesBeforeDataIsRead) {
  EXPECT_THAT(refusal({"model.hidden=7"}), HasSubstr("must be even, got 7"));
  EXPECT_THAT(refusal({"model.mechanism=bahdanaw"}), HasSubstr("did you mean bahdanau?"));
  EXPECT_THAT(refusal({"model.query=stat"}), HasSubstr("did you mean state?"));
  EXPECT_THAT(refusal({"model.score=dot", "model.query=state+token"}),
              HasSubstr("use general or additive"));
  EXPECT_THAT(refusal({"model.bias=gaussian"}), HasSubstr("take scope around:D"));
  EXPECT_THAT(refusal({"model.scope=around:5"}), HasSubstr("bias gaussian trains; add it"));
  EXPECT_THAT(refusal({"model.bias=grid:4x4"}), HasSubstr("take relative_keys:L or buckets:N"));
  EXPECT_THAT(refusal({"model.bias=offset"}), HasSubstr("cancels"));
  EXPECT_THAT(refusal({"model.scope=blocks"}), HasSubstr("no scope is called"));
  EXPECT_THAT(refusal({"model.scope=mask"}), HasSubstr("no scope is called"));
  EXPECT_THAT(refusal({"model.normaliser=monotonic_hard"}), HasSubstr("take monotonic"));
  EXPECT_THAT(refusal({"model.normaliser=temperature:0"}), HasSubstr("temperature"));
  EXPECT_THAT(refusal({"model.mechanism=hard", "model.bias=sink"}), HasSubstr("take softmax"));
  EXPECT_THAT(refusal({"model.entropy_weight=0.01"}), HasSubstr("take 0, or normaliser hard"));
  EXPECT_EQ(refusal({"model.mechanism=hard", "model.entropy_weight=0.01"}), "");
  EXPECT_THAT(refusal({"model.input_feeding=true"}), HasSubstr("take model.query = state"));
  EXPECT_EQ(refusal({"model.input_feeding=true", "model.query=state"}), "");
  EXPECT_THAT(refusal({"model.copy=true", "model.normaliser=sigmoid"}),
              HasSubstr("take scope all"));
  EXPECT_THAT(refusal({"model.copy=true", "model.bias=sink"}), HasSubstr("take scope all"));
  EXPECT_THAT(refusal({"model.copy=true", "model.mechanism=local_p"}), HasSubstr("take scope all"));
  EXPECT_THAT(refusal({"model.score=none", "model.copy=true"}), HasSubstr("model.copy needs"));
  EXPECT_THAT(refusal({"model.score=none", "model.coverage_weight=1"}),
              HasSubstr("model.coverage_weight needs"));
  EXPECT_THAT(refusal({"model.self_layers=1", "model.heads=3"}), HasSubstr("does not divide"));
  EXPECT_THAT(refusal({"model.tied=all", "model.encoder=none"}),
              HasSubstr("set model.embedding = model.hidden"));
  EXPECT_EQ(refusal({"model.plain=true", "model.score=none", "model.hidden=7"}), "");
  EXPECT_THAT(refusal({"model.plain=true"}), HasSubstr("set model.score = none"));
  for (const auto& [other, remedy] : {std::pair{"model.cell=lstm", "model.cell = gru"},
                                      {"model.encoder=none", "model.encoder = recurrent"},
                                      {"model.encoder_layers=2", "model.encoder_layers = 1"},
                                      {"model.decoder_layers=2", "model.decoder_layers = 1"},
                                      {"model.self_layers=1", "model.self_layers = 0"},
                                      {"model.intra_decoder=true", "model.intra_decoder = false"},
                                      {"model.tied=target", "model.tied = none"}})
    EXPECT_THAT(refusal({"model.plain=true", "model.score=none", other}), HasSubstr(remedy));
  // Without attention the other settings are unused.
  EXPECT_EQ(refusal({"model.score=none", "model.mechanism=self"}), "");
}

TEST(Seq2SeqConfig, TheNetworkRefusesTheSame) {
  Seq2SeqConfig config;
  config.mechanism = "linformer";
  EXPECT_THROW(Seq2Seq(config, 5, 5), Error);
}

TEST(Seq2SeqConfig, OneVocabularyHasOneSize) {
  for (const char* setting : {"model.tied=all", "model.copy=true"}) {
    Seq2SeqConfig config;
    assign(config.settings(), setting);
    EXPECT_TRUE(config.wants_joint_vocabulary());
    try {
      Seq2Seq(config, 6, 5);
      ADD_FAILURE() << setting;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("with 6 source and 5 target tokens"));
    }
  }
}

}  // namespace seq2seq_config_test
}  // namespace attend
