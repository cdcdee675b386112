#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attend/base/settings.h"
#include "attend/explain/methods.h"
#include "attend/models/new_pair_model.h"

namespace attend::test {

// A small untrained model in float64, for differences of its answers.
struct SmallModel {
  std::string name;
  PairModel model;
  std::string source, target;
  bool frames = false;

  SmallModel(std::string given_name, const std::string& type,
             const std::vector<std::string>& settings, TargetKind kind = TargetKind::text,
             PairTexts pairs = PairTexts::never)
      : name(std::move(given_name)) {
    at::manual_seed(7);
    ModelConfig config;
    config.type = type;
    for (const std::string& one : settings) assign(config.settings(), one);
    TextConfig text;
    text.source_units = text.target_units = "space";
    text.target = kind;
    text.pairs = pairs;
    if (kind != TargetKind::text) text.target_units = "line";
    if (kind == TargetKind::span) text.normalise = NormalForm::none;
    const AnswerKind& answers = config.answer_kind(text);
    text.joint_vocabulary = answers.is_text() || config.chosen().wants_joint_vocabulary();
    source = pairs == PairTexts::never ? "a b c d e" : "a b\tc d e";
    const bool number = text.wants_numbers(), tags = answers.is_tags();
    const bool label = answers.is_label() || answers.is_label_set();
    target = number              ? "1.5"
             : label             ? "good"
             : answers.fills()   ? source
             : answers.is_span() ? "d e"
             : tags              ? "x y z x x"
                                 : "x y z";
    const std::string other = number ? "-2" : label ? "bad" : tags ? "z x y" : "z x";
    std::vector<Example> examples = {{source, {target}}, {"e d a", {other}}};
    if (answers.is_span()) examples[1] = {"e d\ta", {"a"}};
    model = make_pair_model(text, config, examples);
    model.network->to(at::kDouble);
    model.network->eval();
  }

  Subject subject() const {
    EncodedPair pair = model.encode({Example{source, {target}}})[0];
    if (pair.labels) pair.target = *std::exchange(pair.labels, std::nullopt);
    return make_subject(model, pair);
  }
};

// Classifiers with other targets than a label, or other sources than one text.
inline std::vector<SmallModel> other_classifiers() {
  const std::vector<std::string> two = {"model.depth=8", "model.heads=2", "model.feed_forward=10",
                                        "model.layers=2"};
  // Smooth, so that few steps integrate gradients.
  std::vector<std::string> first = two;
  first.insert(first.end(), {"model.pooling=first", "model.activation=gelu"});
  std::vector<SmallModel> models;
  models.emplace_back("classifier_number", "classifier", two, TargetKind::number);
  models.emplace_back("classifier_labels", "classifier", two, TargetKind::labels);
  std::vector<std::string> smooth = two;
  smooth.emplace_back("model.activation=gelu");
  models.emplace_back("reader", "reader", smooth, TargetKind::span, PairTexts::always);
  models.emplace_back("classifier_pairs", "classifier", first, TargetKind::text,
                      PairTexts::optional);
  return models;
}

// Models with mechanisms around the operator. `layers`: settings of all of them.
inline void add_mechanisms(const std::vector<std::string>& layers,
                           std::vector<SmallModel>& models) {
  const auto with = [](std::vector<std::string> all, const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto add = [&](const char* name, const char* type,
                       const std::vector<std::string>& settings) {
    models.emplace_back(name, type, settings);
  };
  add("lm_gated", "lm", with(layers, {"model.layers=2", "model.mechanism=gated_attention"}));
  add("transformer_differential", "transformer",
      with(layers, {"model.encoder_layers=1", "model.decoder_layers=1",
                    "model.mechanism=differential", "model.source_mechanism=differential"}));
  add("encoder_latent", "encoder", with(layers, {"model.layers=2", "model.mechanism=latent"}));
  add("lm_sparse", "lm",
      with(layers, {"model.layers=2", "model.mechanism=nsa", "model.sparse_block=2",
                    "model.sparse_blocks=2", "model.sparse_window=2"}));
  add("transformer_residuals", "transformer",
      with(layers,
           {"model.encoder_layers=2", "model.decoder_layers=2", "model.sublayer_input=attention"}));
  add("lm_segments", "lm",
      with(layers, {"model.layers=2", "model.mechanism=infini", "model.memory_segment=2"}));
  add("lm_mixed", "lm",
      with(layers, {"model.layers=2", "model.mechanism=multi_token", "model.mixed_queries=2",
                    "model.mixed_keys=3"}));
  add("lm_selective", "lm", with(layers, {"model.layers=2", "model.mechanism=selective"}));
  add("lm_blocks", "lm",
      with(layers, {"model.layers=2", "model.mechanism=moba", "model.scope=top_blocks:2,2"}));
  add("lm_indexed", "lm",
      with(layers, {"model.layers=2", "model.mechanism=dsa", "model.index_keys=3"}));
}

// Every type of model for texts, with each kind of attention that methods treat differently.
inline std::vector<SmallModel> small_models() {
  using Assignments = std::vector<std::string>;
  const Assignments seq2seq = {"model.hidden=8", "model.embedding=6", "model.attention_depth=5"};
  const Assignments layers = {"model.depth=8", "model.heads=2", "model.feed_forward=10"};
  const auto with = [](Assignments all, Assignments more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  std::vector<SmallModel> models;
  const auto add = [&](const char* name, const char* type, const Assignments& settings) {
    models.emplace_back(name, type, settings);
  };
  add("seq2seq", "seq2seq", seq2seq);
  add("seq2seq_without_attention", "seq2seq", with(seq2seq, {"model.score=none"}));
  add("seq2seq_with_layers", "seq2seq",
      with(seq2seq, {"model.self_layers=1", "model.heads=2", "model.intra_decoder=true"}));
  add("transformer", "transformer",
      with(layers, {"model.encoder_layers=2", "model.decoder_layers=2"}));
  add("transformer_linear", "transformer",
      with(layers, {"model.encoder_layers=1", "model.decoder_layers=1", "model.mechanism=linear"}));
  add("lm", "lm", with(layers, {"model.layers=2"}));
  add_mechanisms(layers, models);
  add("lm_recurrence", "lm", with(layers, {"model.layers=2", "model.layer=gated_delta"}));
  add("lm_hybrid", "lm", with(layers, {"model.layers=2", "model.layer=attention,gla"}));
  add("encoder_recurrence", "encoder", with(layers, {"model.layers=2", "model.layer=mamba2"}));
  add("encoder", "encoder", with(layers, {"model.layers=2"}));
  add("tagger", "tagger", with(layers, {"model.layers=2", "model.recurrent_layers=0"}));
  add("tagger_recurrent", "tagger", {"model.depth=8", "model.layers=0"});
  add("classifier_bag", "classifier", {"model.depth=8"});
  add("classifier_fixed", "classifier",
      {"model.depth=8", "model.pooling=fixed_mlp", "model.queries=2"});
  add("classifier_recurrent", "classifier",
      {"model.depth=8", "model.recurrent_layers=1", "model.pooling=fixed_dot"});
  add("classifier_class", "classifier", with(layers, {"model.layers=2", "model.pooling=class"}));
  add("classifier_recurrence", "classifier",
      with(layers, {"model.layers=2", "model.layer=delta,attention"}));
  add("classifier_mean", "classifier", with(layers, {"model.layers=2"}));
  add("classifier_gated", "classifier",
      with(layers, {"model.layers=3", "model.gated=true", "model.first_norm=false",
                    "model.normalise_input=true", "model.bias=none", "model.positions=rotary",
                    "model.scopes=all; window:1", "model.hidden=7", "model.hidden_norm=true"}));
  for (SmallModel& other : other_classifiers()) models.push_back(std::move(other));
  return models;
}

// Models with other rules for weights: keys out of scope, sums other than 1, negative weights.
inline std::vector<SmallModel> models_with_rules() {
  const auto decoder = [](const char* name, std::vector<std::string> more) {
    std::vector<std::string> all = {"model.hidden=8", "model.embedding=6",
                                    "model.attention_depth=5"};
    all.insert(all.end(), more.begin(), more.end());
    return SmallModel(name, "seq2seq", all);
  };
  std::vector<SmallModel> models;
  models.push_back(decoder("window", {"model.scope=window:1"}));
  models.push_back(decoder("sigmoid", {"model.normaliser=sigmoid"}));
  models.push_back(decoder("unnormalised", {"model.normaliser=none"}));
  models.push_back(decoder("sink", {"model.bias=sink"}));
  models.push_back(decoder("sparsemax", {"model.normaliser=sparsemax"}));
  models.emplace_back("causal", "lm",
                      std::vector<std::string>{"model.depth=8", "model.heads=2",
                                               "model.feed_forward=10", "model.layers=2"});
  models.emplace_back("mean", "classifier",
                      std::vector<std::string>{"model.depth=8", "model.heads=2",
                                               "model.feed_forward=10", "model.layers=2"});
  return models;
}

inline SmallModel model_with_rules(const std::string& name) {
  for (SmallModel& model : models_with_rules())
    if (model.name == name) return model;
  throw std::logic_error("no model " + name);
}

inline SmallModel small_model(const std::string& name) {
  for (SmallModel& model : small_models())
    if (model.name == name) return model;
  throw std::logic_error("no small model " + name);
}

}  // namespace attend::test
