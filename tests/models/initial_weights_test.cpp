#include "attend/models/initial_weights.h"

#include <gtest/gtest.h>

#include <utility>

#include "attend/models/parameters_file.h"
#include "tests/models/networks.h"
#include "tests/support/files.h"

namespace attend {
namespace initial_weights_test {

using at::Tensor;

Vocabulary of_tokens(const std::vector<std::string>& tokens) {
  // Earlier tokens are more frequent, which fixes their order.
  std::vector<std::vector<std::string>> sequences;
  for (size_t i = 0; i < tokens.size(); ++i) sequences.emplace_back(tokens.size() - i, tokens[i]);
  return Vocabulary::build(sequences);
}

// If the network has a joint vocabulary, both vocabularies have the same tokens.
PairModel model_of(const test::SomeNetwork& network, const std::vector<std::string>& source,
                   const std::vector<std::string>& target) {
  PairModel model;
  model.config = network.config();
  if (network.source.is_frames()) {
    model.text.source_units = network.source.as<NeighbourForm>() != nullptr ? "molecule" : "image";
    model.text.frames.patch = 2;
    model.text.frames.image_height = 6;
    model.text.frames.image_width = 8;
  }
  model.text.joint_vocabulary =
      model.config.chosen().wants_joint_vocabulary() || model.config.row().answers->is_text();
  if (model.config.row().answers->is_span()) model.text = model.config.row().text;
  if (network.target.is_number()) model.text.target = TargetKind::number;
  if (network.target.is_label_set) model.text.target = TargetKind::labels;
  if (network.source.as<NodeForm>() != nullptr)
    model.graph = test::ring_graph(5 * std::ssize(source));
  model.source_vocabulary = of_tokens(source);
  model.target_vocabulary = of_tokens(model.text.joint_vocabulary ? source : target);
  model.network = model.make_network();
  torch::NoGradGuard no_gradient;
  // Gives biases different values, too.
  for (Tensor& parameter : model.network->parameters()) parameter.add_(at::rand_like(parameter));
  return model;
}

class EveryInitialNetwork : public testing::TestWithParam<test::SomeNetwork> {};

// Rows move with their tokens, to any place; new tokens keep their initial rows.
TEST_P(EveryInitialNetwork, TakesTheRowsOfItsTokens) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  torch::manual_seed(3);
  const PairModel other = model_of(GetParam(), {"a", "b", "c"}, {"x", "y", "z"});
  save_weights(*other.network, path);
  const PairModel model = model_of(GetParam(), {"d", "c", "a", "b"}, {"z", "v", "x", "w", "y"});
  std::map<std::string, Tensor> before;
  for (const auto& item : model.network->named_parameters())
    before.emplace(item.key(), item.value().detach().clone());
  const auto own = model.network->named_parameters();
  EXPECT_EQ(load_initial_weights(model, other, path), static_cast<int64_t>(own.size()));
  int64_t axes = 0;
  for (const auto& item : other.network->named_parameters()) {
    const Tensor now = own[item.key()], theirs = item.value();
    if (now.sizes() == theirs.sizes()) {
      EXPECT_TRUE(at::equal(now, theirs)) << item.key();
      continue;
    }
    ++axes;
    int64_t axis = 0;
    while (now.size(axis) == theirs.size(axis)) ++axis;
    const bool is_source = now.size(axis) - theirs.size(axis) == 1;
    const Vocabulary& here = is_source ? model.source_vocabulary : model.target_vocabulary;
    const Vocabulary& there = is_source ? other.source_vocabulary : other.target_vocabulary;
    const int64_t left_out = here.size() - now.size(axis);
    for (int64_t id = left_out; id < here.size(); ++id) {
      const int64_t from = id <= Vocabulary::unknown ? id : there.id(here.token(id));
      const bool is_new = id > Vocabulary::unknown && from == Vocabulary::unknown;
      const Tensor wanted = is_new ? before.at(item.key()).select(axis, id - left_out)
                                   : theirs.select(axis, from - left_out);
      EXPECT_TRUE(at::equal(now.select(axis, id - left_out), wanted)) << item.key() << " " << id;
    }
  }
  const bool reads_tokens =
      !GetParam().source.is_frames() && GetParam().source.as<NodeForm>() == nullptr;
  EXPECT_EQ(axes > 0, reads_tokens || other.target_tokens() > 0);
}

std::vector<test::SomeNetwork> networks(bool mix_tokens) {
  std::vector<test::SomeNetwork> found;
  for (const test::SomeNetwork& network : test::some_networks())
    if (network.mixes_tokens == mix_tokens) found.push_back(network);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryInitialNetwork, testing::ValuesIn(networks(false)),
                         [](const auto& info) { return info.param.name; });

// A weight without rows of single tokens keeps its new values; the others are taken.
TEST(InitialWeights, LeaveWhatMixesTokens) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  for (const test::SomeNetwork& network : networks(true)) {
    torch::manual_seed(3);
    const PairModel other = model_of(network, {"a", "b", "c"}, {"x", "y", "z"});
    save_weights(*other.network, path);
    const PairModel model = model_of(network, {"d", "c", "a", "b"}, {"z", "x", "y"});
    std::map<std::string, Tensor> before;
    for (const auto& item : model.network->named_parameters())
      before.emplace(item.key(), item.value().detach().clone());
    const int64_t taken = load_initial_weights(model, other, path);
    EXPECT_GT(taken, 0) << network.name;
    EXPECT_LT(taken, std::ssize(before)) << network.name;
    int64_t left = 0;
    for (const auto& item : model.network->named_parameters())
      left += at::equal(item.value(), before.at(item.key())) ? 1 : 0;
    EXPECT_EQ(left, std::ssize(before) - taken) << network.name;
  }
}

TEST(InitialWeights, TakeWhatMixesTokensThatAreTheSame) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  for (const test::SomeNetwork& network : networks(true)) {
    torch::manual_seed(3);
    const PairModel other = model_of(network, {"a", "b", "c"}, {"x", "y", "z"});
    save_weights(*other.network, path);
    const PairModel model = model_of(network, {"d", "c", "a", "b"}, {"x", "y", "z"});
    const auto own = model.network->named_parameters();
    EXPECT_EQ(load_initial_weights(model, other, path), static_cast<int64_t>(own.size()));
    for (const auto& item : other.network->named_parameters())
      EXPECT_TRUE(at::equal(own[item.key()], item.value())) << network.name << ' ' << item.key();
  }
}

// Features have numbers with the same meaning in both graphs.
TEST(InitialWeights, TakeTheFeaturesThatBothGraphsHave) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  const auto graph_model = [](const std::string& last_feature) {
    const std::string nodes = "a\ttrain\tx\t0 1\nb\t-\t\t" + last_feature + "\n";
    PairModel model;
    model.config = test::SomeNetwork{"graph", {}}.config();
    model.graph = parse_graph(nodes, "nodes", "a b\n", "edges", {}).graph;
    model.source_vocabulary = of_tokens({"a", "b"});
    model.target_vocabulary = of_tokens({"x", "y"});
    model.network = model.make_network();
    return model;
  };
  torch::manual_seed(3);
  const PairModel large = graph_model("4"), small = graph_model("2");
  for (const auto& [model, other] : {std::pair(&large, &small), std::pair(&small, &large)}) {
    save_weights(*other->network, path);
    const auto own = model->network->named_parameters();
    const Tensor before = own["features"].detach().clone();
    const Tensor theirs = other->network->named_parameters()["features"];
    EXPECT_EQ(load_initial_weights(*model, *other, path), static_cast<int64_t>(own.size()));
    EXPECT_TRUE(at::equal(own["features"].slice(0, 0, 3), theirs.slice(0, 0, 3)));
    EXPECT_TRUE(at::equal(own["features"].slice(0, 3), before.slice(0, 3))) << "new ones stay";
  }
}

TEST(InitialWeights, LeaveWhatHasAnotherShape) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  const test::SomeNetwork small = {"seq2seq", {}}, large = {"seq2seq", {"model.hidden=24"}};
  const PairModel other = model_of(small, {"a"}, {"x"}), model = model_of(large, {"a"}, {"x"});
  save_weights(*other.network, path);
  const int64_t taken = load_initial_weights(model, other, path);
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, static_cast<int64_t>(model.network->parameters().size()));
  EXPECT_TRUE(at::equal(model.network->named_parameters()["source_embedding.weight"],
                        other.network->named_parameters()["source_embedding.weight"]));
}

}  // namespace initial_weights_test
}  // namespace attend
