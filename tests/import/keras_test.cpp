#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"
#include "tests/support/hdf5.h"
#include "tests/support/zip.h"

namespace attend {
namespace keras_test {

using at::Tensor;
using nlohmann::json;
using testing::HasSubstr;

using Datasets = std::map<std::string, Tensor>;

constexpr int64_t units = 3, length = 6;
// Ids of targets; letters are 2 and 3.
constexpr int64_t begin = 4, end = 5;

Datasets small_weights() {
  int64_t number = 0;
  const auto made = [&](const std::vector<int64_t>& shape) {
    return test::by_formula(++number, shape, false) * 3;
  };
  Datasets all = {{"layers/embedding/vars/0", made({5, 4})},
                  {"layers/embedding_1/vars/0", made({6, 2})},
                  {"layers/time_distributed/layer/vars/0", made({4, units})},
                  {"layers/time_distributed/layer/vars/1", made({units})},
                  {"layers/additive_attention/vars/0", made({units})},
                  {"layers/dense/vars/0", made({2 * units, 6})},
                  {"layers/dense/vars/1", made({6})}};
  const auto gru = [&](const std::string& name, int64_t depth, int64_t own) {
    all[name + "/cell/vars/0"] = made({depth, 3 * own});
    all[name + "/cell/vars/1"] = made({own, 3 * own});
    all[name + "/cell/vars/2"] = made({2, 3 * own});
  };
  gru("layers/bidirectional/forward_layer", 4, 2);
  gru("layers/bidirectional/backward_layer", 4, 2);
  gru("layers/gru", 2, units);
  return all;
}

json tensor_of(const std::string& layer) {
  return {{"class_name", "__keras_tensor__"}, {"config", {{"keras_history", {layer, 0, 0}}}}};
}

json layer(const std::string& type, const std::string& name, json config,
           const std::vector<std::string>& inputs) {
  json arguments = json::array();
  for (const std::string& input : inputs) arguments.push_back(tensor_of(input));
  if (inputs.size() > 1) arguments = json::array({arguments});
  config["name"] = name;
  return {{"class_name", type},
          {"name", name},
          {"config", config},
          {"inbound_nodes", json::array({{{"args", arguments}, {"kwargs", json::object()}}})}};
}

json gru(bool backward) {
  return {{"return_sequences", true}, {"go_backwards", backward}, {"reset_after", true}};
}

json small_config() {
  json layers = json::array();
  layers.push_back(layer("Embedding", "letters", {{"mask_zero", false}}, {"in"}));
  layers.push_back(layer("Embedding", "answers", {{"mask_zero", false}}, {"out"}));
  layers.push_back(layer("Bidirectional", "encoder",
                         {{"merge_mode", "concat"},
                          {"layer", {{"class_name", "GRU"}, {"config", gru(false)}}},
                          {"backward_layer", {{"class_name", "GRU"}, {"config", gru(true)}}}},
                         {"letters"}));
  layers.push_back(layer("GRU", "decoder", gru(false), {"answers"}));
  layers.push_back(layer("TimeDistributed", "projection",
                         {{"layer", {{"class_name", "Dense"}, {"config", {{"use_bias", true}}}}}},
                         {"encoder"}));
  layers.push_back(
      layer("AdditiveAttention", "attention", {{"use_scale", true}}, {"decoder", "projection"}));
  layers.push_back(layer("Concatenate", "both", {{"axis", -1}}, {"decoder", "attention"}));
  layers.push_back(layer("Dense", "scores", {{"activation", "softmax"}}, {"both"}));
  return {{"class_name", "Functional"}, {"config", {{"layers", layers}}}};
}

// {NAME_tokenizer: object, max_NAME_len: length}, as protocol 2 writes it.
std::string pickled(const std::vector<std::string>& sources,
                    const std::vector<std::string>& targets) {
  const auto text = [](const std::string& value) {
    return "X" + std::string(1, static_cast<char>(value.size())) + std::string(3, '\0') + value;
  };
  const auto number = [](int64_t value) { return "K" + std::string(1, static_cast<char>(value)); };
  const auto side = [&](const std::string& name, const std::vector<std::string>& tokens) {
    std::string index = "}(";
    for (size_t i = 0; i < tokens.size(); ++i)
      index += text(tokens[i]) + number(static_cast<int64_t>(i) + 1);
    return text(name + "_tokenizer") + "ckeras\nTokenizer\n)\x81}(" + text("char_level") + "\x88" +
           text("lower") + "\x88" + text("oov_token") + text(tokens[0]) + text("word_index") +
           index + "uub" + text("max_" + name + "_len") + number(length);
  };
  return "\x80\2}(" + side("en", sources) + side("km", targets) + "u.";
}

struct Files {
  json config = small_config();
  Datasets weights = small_weights();
  std::string tokenizers =
      pickled({"<unk>", "a", "b", "c"}, {"<unk>", "x", "\xe1\x9e\x80", "\t", "\n"});

  ImportedModel import(const test::TemporaryFolder& folder) const {
    folder.write("m.keras",
                 test::zip_of({{"metadata.json", "{}"},
                               {"config.json", config.dump()},
                               {"model.weights.h5", test::Hdf5Writer::format(weights)}}));
    if (!tokenizers.empty()) folder.write("assets.pkl", tokenizers);
    return import_model(folder / "m.keras", folder / "ours");
  }
};

// A GRU of Keras: gates update, reset and new state.
Tensor next_state(const Datasets& all, const std::string& name, const Tensor& input,
                  const Tensor& state) {
  const auto part = [&](int i) { return all.at(name + "/cell/vars/" + std::to_string(i)); };
  const auto from_input = (at::matmul(input, part(0)) + part(2)[0]).chunk(3, -1);
  const auto from_state = (at::matmul(state, part(1)) + part(2)[1]).chunk(3, -1);
  const Tensor update = at::sigmoid(from_input[0] + from_state[0]);
  const Tensor reset = at::sigmoid(from_input[1] + from_state[1]);
  const Tensor fresh = at::tanh(from_input[2] + reset * from_state[2]);
  return update * state + (1 - update) * fresh;
}

// Annotations after the projection, if there is one, [length, units].
Tensor annotations(const Datasets& all, const std::vector<int64_t>& letters) {
  std::vector<Tensor> forward, backward;
  Tensor state = at::zeros({2}, at::kDouble);
  const Tensor& embedding = all.at("layers/embedding/vars/0");
  for (const int64_t letter : letters)
    forward.push_back(
        state = next_state(all, "layers/bidirectional/forward_layer", embedding[letter], state));
  state = at::zeros({2}, at::kDouble);
  for (size_t i = letters.size(); i-- > 0;)
    backward.insert(backward.begin(), state = next_state(all, "layers/bidirectional/backward_layer",
                                                         embedding[letters[i]], state));
  const Tensor both = at::cat({at::stack(forward), at::stack(backward)}, 1);
  const auto projection = all.find("layers/time_distributed/layer/vars/0");
  if (projection == all.end()) return both;
  return at::matmul(both, projection->second) + all.at("layers/time_distributed/layer/vars/1");
}

struct Answered {
  std::vector<int64_t> ids;
  double log_probability = 0;  // the end included
};

// The answer of greedy search, in float64. Their end and ours are one token.
Answered answered(const Datasets& given, const std::vector<int64_t>& letters, size_t maximum) {
  Datasets all;
  for (const auto& [name, tensor] : given) all[name] = tensor.to(at::kDouble);
  const Tensor read = annotations(all, letters);
  Tensor state = at::zeros({read.size(1)}, at::kDouble);
  const auto scale = all.find("layers/additive_attention/vars/0");
  Answered found;
  for (int64_t id = begin; found.ids.size() < maximum;) {
    state = next_state(all, "layers/gru", all.at("layers/embedding_1/vars/0")[id], state);
    const Tensor hidden = at::tanh(state + read);
    const Tensor scores = (scale == all.end() ? hidden : hidden * scale->second).sum(-1);
    const Tensor context = at::matmul(scores.softmax(0), read);
    const Tensor log_probabilities =
        (at::matmul(at::cat({state, context}), all.at("layers/dense/vars/0")) +
         all.at("layers/dense/vars/1"))
            .log_softmax(0);
    id = log_probabilities.argmax().item<int64_t>();
    found.log_probability += log_probabilities[id].item<double>();
    if (id == end) break;
    found.ids.push_back(id);
  }
  return found;
}

void expect_same_answers(const Files& files) {
  const test::TemporaryFolder folder;
  const ImportedModel made = files.import(folder);
  EXPECT_EQ(made.architecture, "Keras");
  EXPECT_EQ(made.type, "seq2seq");
  EXPECT_EQ(made.tokens, 5);
  const Model model(folder / "ours");
  SearchOptions search;
  search.length_penalty = 0;
  search.maximum_length = 8;
  const std::vector<std::string> names = {"<token:0>", "<token:1>", "x", "\xe1\x9e\x80",
                                          "<token:4>"};
  // Sources are lower-cased, lose other characters, and keep their last letters.
  const std::vector<std::pair<std::string, std::vector<int64_t>>> sources = {
      {"abc", {2, 3, 4, 0, 0, 0}},
      {"a", {2, 0, 0, 0, 0, 0}},
      {"C-b!", {4, 3, 0, 0, 0, 0}},
      {"aabbccab", {3, 3, 4, 4, 2, 3}}};
  for (const auto& [source, letters] : sources) {
    const Answered expected = answered(files.weights, letters, 8);
    const Answer answer = model.answer({source}, search).at(0);
    ASSERT_EQ(answer.best().tokens.size(), expected.ids.size()) << source;
    for (size_t i = 0; i < expected.ids.size(); ++i)
      EXPECT_EQ(answer.best().tokens[i], names.at(static_cast<size_t>(expected.ids[i]))) << source;
    EXPECT_NEAR(answer.best().log_probability, expected.log_probability, 1e-5) << source;
  }
}

TEST(Keras, AnswersAsItsLayersDo) { expect_same_answers({}); }

TEST(Keras, NeedsNoProjectionAndNoScale) {
  Files files;
  json& layers = files.config["config"]["layers"];
  layers.erase(4);
  layers[4] =
      layer("AdditiveAttention", "attention", {{"use_scale", false}}, {"decoder", "encoder"});
  for (const char* name : {"time_distributed/layer/vars/0", "time_distributed/layer/vars/1",
                           "additive_attention/vars/0"})
    files.weights.erase(std::string("layers/") + name);
  // The decoder has the depth of the annotations.
  int64_t number = 100;
  const auto made = [&](const std::vector<int64_t>& shape) {
    return test::by_formula(++number, shape, false) * 3;
  };
  files.weights["layers/gru/cell/vars/0"] = made({2, 12});
  files.weights["layers/gru/cell/vars/1"] = made({4, 12});
  files.weights["layers/gru/cell/vars/2"] = made({2, 12});
  files.weights["layers/dense/vars/0"] = made({8, 6});
  expect_same_answers(files);
}

TEST(Keras, NamesWhatItDoesNotRead) {
  const auto refused = [](const std::function<void(Files&)>& change) {
    const test::TemporaryFolder folder;
    Files files;
    change(files);
    const std::string message = test::error_of([&] { files.import(folder); });
    EXPECT_FALSE(std::filesystem::exists(folder / "ours")) << message;
    EXPECT_THAT(message, HasSubstr(folder.path()));
    return message;
  };
  const auto config_of = [](Files& files, size_t number) -> json& {
    return files.config["config"]["layers"][number]["config"];
  };
  EXPECT_THAT(refused([](Files& files) { files.tokenizers.clear(); }),
              HasSubstr("no .pkl file with its tokenizers is next to it"));
  EXPECT_THAT(refused([](Files& files) { files.weights.erase("layers/dense/vars/1"); }),
              HasSubstr("model.weights.h5: has no dataset 'layers/dense/vars/1'"));
  EXPECT_THAT(refused([](Files& files) {
                files.weights["layers/additive_attention/vars/0"] = at::zeros({units}, at::kDouble);
              }),
              HasSubstr("has the type Double and shape [3]; float32 with 1 axes is read"));
  EXPECT_THAT(refused([](Files& files) {
                files.weights["layers/gru/cell/vars/0"] = at::zeros({9, 9});
              }),
              HasSubstr("a weight has the shape [9, 9]"));
  EXPECT_THAT(refused([](Files& files) {
                files.tokenizers = pickled({"<unk>", "a", "b"}, {"<unk>", "x", "y", "\t", "\n"});
              }),
              HasSubstr("5 tokens of the source, and its tokenizer has 4 with padding"));
  EXPECT_THAT(refused([](Files& files) {
                files.tokenizers = pickled({"<unk>", "a", "b", "c"}, {"<unk>", "x", "y", "z", "w"});
              }),
              HasSubstr("two are read, and only the target's has a tab"));
  EXPECT_THAT(refused([&](Files& files) { config_of(files, 3)["reset_after"] = false; }),
              HasSubstr("reset_after is false; only true is read"));
  EXPECT_THAT(refused([&](Files& files) { config_of(files, 2)["layer"]["class_name"] = "LSTM"; }),
              HasSubstr("is LSTM; only GRU is read"));
  EXPECT_THAT(refused([&](Files& files) { config_of(files, 0)["mask_zero"] = true; }),
              HasSubstr("mask_zero is true; only false is read"));
  const auto named_of = [](Files& files, size_t number) -> json& {
    return files.config["config"]["layers"][number]["inbound_nodes"][0]["kwargs"];
  };
  EXPECT_THAT(refused([&](Files& files) {
                named_of(files, 3) = {{"mask", nullptr}, {"initial_state", tensor_of("encoder")}};
              }),
              HasSubstr("belongs to decoder, which reads 2 tensors; 1 are read"));
  EXPECT_THAT(refused([&](Files& files) { named_of(files, 5)["use_causal_mask"] = true; }),
              HasSubstr("use_causal_mask is true; only false is read"));
  EXPECT_THAT(refused([](Files& files) { files.config["config"]["layers"].erase(5); }),
              HasSubstr("has no such layer AdditiveAttention"));
  EXPECT_THAT(refused([](Files& files) {
                files.config["config"]["layers"][6] =
                    layer("Concatenate", "both", {{"axis", -1}}, {"attention", "decoder"});
              }),
              HasSubstr("does not join the decoder's state with the context"));
}

}  // namespace keras_test
}  // namespace attend
