#pragma once

#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "attend/data/node_graph.h"
#include "attend/models/model_config.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_input.h"
#include "attend/text/vocabulary.h"

namespace attend::test {

// Nodes in a ring, each with one to three features of five. Each third node also sees the node four
// places later.
inline std::shared_ptr<const NodeGraph> ring_graph(int64_t nodes) {
  std::string lines, edges;
  for (int64_t i = 0; i < nodes; ++i) {
    lines += fmt::format("n{}\t-\t\t{}{}{}\n", i, i % 5,
                         i % 2 == 0 ? "" : fmt::format(" {}:0.5", (i + 1) % 5),
                         i % 3 == 0 ? fmt::format(" {}:-2", (i + 2) % 5) : "");
    if (nodes > 2 || i + 1 < nodes) edges += fmt::format("n{} n{}\n", i, (i + 1) % nodes);
    if (i % 3 == 0 && i + 4 < nodes - 1) edges += fmt::format("n{} n{}\n", i, i + 4);
  }
  return parse_graph(lines, "nodes", edges, "edges", {}).graph;
}

inline SourceShape ring_source(int64_t tokens) {
  return NodeForm{tokens, ring_graph(tokens - Vocabulary::unknown - 1)};
}

// Frames of two numbers with up to two neighbours, by edges of three kinds.
inline SourceShape bound_source() { return NeighbourForm{6, 2, 4}; }

// Random sources of one length: `tokens` tokens, or 12 frames (patches in 3 rows and 4 columns).
// Frames with neighbours see the previous and the next frame.
inline at::Tensor some_sources(const SourceShape& shape, int64_t count, int64_t tokens) {
  if (shape.as<PairForm>() != nullptr)
    return at::randint(Vocabulary::unknown + 1, 2 * shape.tokens(), {count, tokens}, at::kLong);
  if (!shape.is_frames())
    return at::randint(Vocabulary::unknown + 1, shape.tokens(), {count, tokens}, at::kLong);
  at::Tensor frames = at::rand({count, 12, shape.depth()});
  const auto* bound_form = shape.as<NeighbourForm>();
  if (bound_form == nullptr) return frames;
  const int64_t steps = shape.features(), kinds = steps + bound_form->neighbours;
  frames.slice(2, steps).zero_();
  for (const int64_t step : {-1, 1}) {
    const int64_t slot = step > 0 ? 1 : 0;
    at::Tensor bound = step > 0 ? frames.slice(1, 0, 11) : frames.slice(1, 1);
    bound.select(2, steps + slot).fill_(step);
    bound.select(2, kinds + slot).copy_(at::randint(1, bound_form->kinds, {count, 11}));
  }
  return frames;
}

// A small network, for every type and for the choices with their own computations.
struct SomeNetwork {
  std::string name;
  std::vector<std::string> settings;  // other than type, as key=value
  SourceShape source = {12};
  TargetShape target = 12;
  bool mixes_tokens = false;  // some weights have several rows per token, or one for two tokens

  // The depths are not multiples of a vector's length.
  ModelConfig config() const {
    ModelConfig config;
    assign({config.type_setting()}, "model.type=" + name.substr(0, name.find('_')));
    const Settings all = config.settings();
    const auto set = [&](const std::string& assignment) {
      const std::string key = assignment.substr(0, assignment.find('='));
      for (const Setting& setting : all)
        if (setting.key == key) assign(all, assignment);
    };
    for (const char* small :
         {"model.depth=20", "model.heads=2", "model.feed_forward=21", "model.layers=2",
          "model.encoder_layers=2", "model.decoder_layers=2", "model.embedding=20",
          "model.hidden=20", "model.attention_depth=9", "model.maximum_source_length=16"})
      set(small);
    for (const std::string& each : settings) set(each);
    return config;
  }
};

// For the names of the test cases in GoogleTest.
inline void PrintTo(const SomeNetwork& network, std::ostream* out) { *out << network.name; }

inline std::vector<SomeNetwork> some_classifiers() {
  return {
      {"classifier", {"model.pooling=fixed_mlp", "model.hidden=7"}},
      {"classifier_bag", {"model.layers=0", "model.pooling=sum"}},
      {"classifier_class", {"model.pooling=class"}},
      {"classifier_first",
       {"model.pooling=first", "model.hidden=7", "model.hidden_activation=tanh",
        "model.normalise_input=true", "model.positions=learned", "model.normalise_first=false"}},
      {"classifier_normalised",
       {"model.hidden=7", "model.hidden_norm=true", "model.gated=true", "model.bias=none",
        "model.positions=rotary", "model.rotary_bases=160000; 10000",
        "model.scopes=all; window:2"}}};
}

// Classifiers with other targets than a label, or other sources than one text.
inline std::vector<SomeNetwork> classifiers_without_label() {
  return {{"classifier_number", {"model.recurrent_layers=1"}, {12}, number_targets},
          {"classifier_labels", {"model.layers=1"}, {12}, {12, /*is_set=*/true}},
          {"classifier_pairs", {"model.layers=1"}, PairForm{12}},
          {"classifier_probability", {}, PairForm{12}, TargetShape::probability()}};
}

inline std::vector<SomeNetwork> some_language_models() {
  return {{"lm", {"model.context=16"}},
          {"lm_untied", {"model.tied=false", "model.bias=alibi", "model.context=16"}},
          {"recommender", {"model.context=16"}},
          {"lm_tanh",
           {"model.activation=gelu_tanh", "model.epsilon=0.1", "model.normalise_first=false",
            "model.context=16"}},
          {"lm_gated",
           {"model.gated=true", "model.first_norm=false", "model.positions=rotary",
            "model.scopes=all; window:2", "model.context=16"}},
          {"lm_forget", {"model.bias=forget", "model.positions=none", "model.context=16"}},
          {"lm_cope", {"model.bias=cope:6", "model.positions=none", "model.context=16"}},
          {"lm_yarn",
           {"model.positions=rotary", "model.rotary_scaling=yarn:4,8", "model.rotary_share=0.5",
            "model.rotary_pairs=halves", "model.context=16"}},
          {"lm_recurrence", {"model.layer=gated_delta", "model.context=16"}},
          {"lm_hybrid",
           {"model.layer=kda,mamba2,attention", "model.layers=3", "model.positions=none",
            "model.context=16"}},
          {"lm_experts", {"model.experts=4", "model.chosen_experts=1", "model.context=16"}}};
}

inline std::vector<SomeNetwork> some_transformers() {
  return {{"transformer_recurrence", {"model.layer=retention,gla"}},
          {"transformer_shared", {"model.key_heads=1", "model.positions=learned"}},
          {"transformer_experts", {"model.experts=3"}},
          {"transformer_marian",
           {"model.tied=all", "model.output_bias=true", "model.normalise_first=false",
            "model.positions=sinusoidal_halves", "model.activation=swish"}}};
}

inline std::vector<SomeNetwork> some_encoders() {
  return {{"encoder", {}},
          {"encoder_layer",
           {"model.output_layer=true", "model.class_token=false", "model.activation=gelu"}},
          {"encoder_recurrence", {"model.layer=delta"}},
          {"encoder_albert",
           {"model.output_layer=true", "model.class_token=false", "model.bias=none",
            "model.normalise_first=false", "model.normalise_input=true", "model.layers=3",
            "model.shared_layers=1, 2, 1", "model.embedding_depth=7"}},
          {"encoder_contacts",
           {"model.token_dropout=0.12", "model.contact_head=true", "model.positions=rotary",
            "model.rotary_scaling=float16", "model.bias=none"}}};
}

inline std::vector<SomeNetwork> networks_with_distances() {
  return {
      {"transformer_distances",
       {"model.mechanism=disentangled", "model.bias=content_to_position:3 + position_to_content:3",
        "model.distances=shared", "model.normalise_distances=true"}},
      {"tagger_distances",
       {"model.recurrent_layers=0", "model.mechanism=disentangled",
        "model.bias=content_to_position:4,12 + position_to_content:4,12", "model.distances=mapped",
        "model.convolution=3", "model.convolution_activation=gelu",
        "model.normalise_first=false"}}};
}

inline std::vector<SomeNetwork> some_networks() {
  const SourceShape image = ImageForm{4, 3, 4};
  std::vector<SomeNetwork> all = {
      {"seq2seq", {}},
      {"seq2seq_lstm",
       {"model.cell=lstm", "model.encoder_layers=2", "model.decoder_layers=2",
        "model.residual=true"}},
      {"seq2seq_none", {"model.score=none"}},
      {"seq2seq_plain",
       {"model.score=none", "model.plain=true", "model.encoder_layers=1",
        "model.decoder_layers=1"}},
      {"seq2seq_dot", {"model.mechanism=luong_dot", "model.input_feeding=true"}},
      {"seq2seq_general", {"model.mechanism=luong_general", "model.self_layers=1"}},
      {"seq2seq_location", {"model.mechanism=luong_location", "model.intra_decoder=true"}},
      {"seq2seq_sensitive", {"model.mechanism=location_sensitive"}},
      {"seq2seq_local", {"model.mechanism=local_p"}},
      {"seq2seq_hard", {"model.normaliser=hard"}},
      {"seq2seq_monotonic", {"model.normaliser=monotonic"}},
      {"seq2seq_sparse", {"model.normaliser=sparsemax", "model.tied=target"}},
      {"seq2seq_copy", {"model.copy=true", "model.tied=all"}},
      {"seq2seq_bare", {"model.encoder=none"}},
      {"seq2seq_image", {"model.encoder=none"}, image},
      {"transformer", {}},
      {"transformer_relative",
       {"model.bias=relative_keys:3 + alibi", "model.source_bias=sink", "model.activation=gelu"}},
      {"transformer_grid", {"model.bias=grid:5x6 + buckets:8", "model.positions=rotary"}},
      {"transformer_random", {"model.mechanism=performer"}},
      {"transformer_additive", {"model.source_mechanism=bahdanau", "model.tied=none"}},
      {"transformer_image", {"model.convolutions=1"}, image},
      {"tagger", {}},
      {"tagger_recurrent", {"model.layers=0", "model.recurrent_layers=2", "model.cell=gru"}},
      {"tagger_layers", {"model.recurrent_layers=0", "model.class_token=false"}},
      {"tagger_bag", {"model.layers=0", "model.recurrent_layers=0"}},
      {"reader", {"model.output_layer=true"}, PairForm{12, /*closing=*/1}},
      {"vit", {"model.convolutions=1"}, image},
      {"vit_number", {}, image, number_targets},
      {"vit_registers", {"model.registers=2", "model.layers=2"}, image},
      {"set", {"model.inducing_points=5"}, FrameForm{3}},
      {"set_self", {"model.inducing_points=0"}, {12}, number_targets},
      {"set_bound", {"model.inducing_points=0"}, bound_source()},
      {"classifier_bound", {"model.bias=none"}, bound_source(), number_targets},
      {"transformer_bound", {}, bound_source()},
      {"graph", {}, ring_source(12)},
      {"graph_mean",
       {"model.output_heads=3", "model.score=general"},
       ring_source(12),
       12,
       /*mixes_tokens=*/true},
      {"graph_labels", {"model.layers=1"}, ring_source(12), {12, /*is_set=*/true}},
      {"graph_number", {"model.layers=1"}, ring_source(12), number_targets},
      {"classifier_hybrid", {"model.layer=linear,attention", "model.pooling=first"}}};
  for (const auto& more :
       {some_encoders(), networks_with_distances(), some_classifiers(), classifiers_without_label(),
        some_language_models(), some_transformers()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace attend::test
