#include <gmock/gmock.h>

#include <functional>

#include "attend/import/export_model.h"
#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace heads_test {

using at::Tensor;
using test::by_formula;
using test::ForeignFolder;
using test::json;
using testing::HasSubstr;

// Imports a foreign folder and returns the model folder.
std::string imported(const test::TemporaryFolder& folder, const std::string& name,
                     const ForeignFolder& foreign) {
  foreign.write(folder / name);
  import_model(folder / name, folder / (name + "-ours"));
  return folder / (name + "-ours");
}

// BertModel changed to a class with a head on its vectors.
ForeignFolder with_head(const std::string& architecture, const std::vector<std::string>& labels) {
  ForeignFolder foreign("BertModel");
  foreign.config()["architectures"] = {architecture};
  const auto count = static_cast<int64_t>(labels.size());
  for (int64_t i = 0; i < count; ++i)
    foreign.config()["id2label"][std::to_string(i)] = labels[static_cast<size_t>(i)];
  foreign.tensors["classifier.weight"] = by_formula(1, {count, 8}, false);
  foreign.tensors["classifier.bias"] = by_formula(2, {count}, false);
  return foreign;
}

// [tokens, 8], the input of the head.
Tensor vectors_of(const std::string& model, const std::string& text) {
  const Embedding found = Model(model).embed({text}).at(0);
  return at::tensor(found.vectors).view({-1, found.depth});
}

TEST(ImportedHeads, GiveEachTokenItsLabel) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> labels = {"O", "B-PER", "I-PER"};
  const ForeignFolder foreign = with_head("BertForTokenClassification", labels);
  const Model model(imported(folder, "tags", foreign));
  EXPECT_EQ(model.type(), "tagger");
  const std::string text = "the cat sees Paris";
  const Tensor vectors = vectors_of(imported(folder, "bare", ForeignFolder("BertModel")), text);
  const Tensor logits = vectors.matmul(foreign.tensors.at("classifier.weight").t()) +
                        foreign.tensors.at("classifier.bias");
  const auto [best, ids] = logits.log_softmax(-1).max(-1);
  const Answer answer = model.answer({text}).at(0);
  ASSERT_EQ(std::ssize(answer.best().tokens), vectors.size(0));
  for (int64_t i = 0; i < vectors.size(0); ++i) {
    const auto place = static_cast<size_t>(i);
    EXPECT_EQ(answer.best().tokens[place], labels[static_cast<size_t>(ids[i].item<int64_t>())]);
    EXPECT_NEAR(answer.best().log_probabilities[place], best[i].item<double>(), 1e-5);
  }
}

// ModernBERT's head for labels, applied to each token.
TEST(ImportedHeads, GiveEachTokenItsLabelBehindALayer) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> labels = {"O", "B"};
  ForeignFolder foreign("ModernBertForSequenceClassification");
  foreign.config()["architectures"] = {"ModernBertForTokenClassification"};
  foreign.config()["id2label"] = {{"0", labels[0]}, {"1", labels[1]}};
  ForeignFolder bare = foreign;
  bare.config()["architectures"] = {"ModernBertModel"};
  for (const char* name : {"head.dense.weight", "head.dense.bias", "head.norm.weight",
                           "head.norm.bias", "classifier.weight", "classifier.bias"})
    bare.tensors.erase(name);
  const std::string text = "the cat sees Paris";
  const Tensor vectors = vectors_of(imported(folder, "bare", bare), text);
  const auto tensor = [&](const std::string& name) { return foreign.tensors.at(name); };
  const auto linear = [&](const Tensor& x, const std::string& name) {
    return x.matmul(tensor(name + ".weight").t()) + tensor(name + ".bias");
  };
  const Tensor normed = at::layer_norm(at::gelu(linear(vectors, "head.dense"), "tanh"), {8},
                                       tensor("head.norm.weight"), tensor("head.norm.bias"),
                                       foreign.config()["norm_eps"].get<double>());
  const auto [best, ids] = linear(normed, "classifier").log_softmax(-1).max(-1);
  const std::string out = imported(folder, "tags", foreign);
  export_model(out, folder / "written");
  import_model(folder / "written", folder / "again");
  const Answer answer = Model(out).answer({text}).at(0);
  EXPECT_EQ(Model(folder / "again").answer({text}).at(0).best().log_probabilities,
            answer.best().log_probabilities);
  ASSERT_EQ(std::ssize(answer.best().tokens), vectors.size(0));
  for (int64_t i = 0; i < vectors.size(0); ++i) {
    const auto place = static_cast<size_t>(i);
    EXPECT_EQ(answer.best().tokens[place], labels[static_cast<size_t>(ids[i].item<int64_t>())]);
    EXPECT_NEAR(answer.best().log_probabilities[place], best[i].item<double>(), 1e-5);
  }
}

TEST(ImportedHeads, GiveANumber) {
  const test::TemporaryFolder folder;
  const ForeignFolder foreign = with_head("BertForSequenceClassification", {"score"});
  const Model model(imported(folder, "number", foreign));
  const std::string text = "the cat sees Paris";
  const Tensor first = vectors_of(imported(folder, "bare", ForeignFolder("BertModel")), text)[0];
  const auto tensor = [&](const char* name) { return foreign.tensors.at(name); };
  const Tensor pooled =
      (tensor("pooler.dense.weight").matmul(first) + tensor("pooler.dense.bias")).tanh();
  const Tensor expected = tensor("classifier.weight").matmul(pooled) + tensor("classifier.bias");
  EXPECT_NEAR(model.answer({text}).at(0).best().number.value(), expected.item<double>(), 1e-5);
}

TEST(ImportedHeads, GiveSeveralLabels) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign = with_head("BertForSequenceClassification", {"a", "b", "c"});
  foreign.config()["problem_type"] = "multi_label_classification";
  const std::string out = imported(folder, "labels", foreign);
  const std::string text = "the cat sees Paris";
  const Tensor first = vectors_of(imported(folder, "bare", ForeignFolder("BertModel")), text)[0];
  const auto tensor = [&](const char* name) { return foreign.tensors.at(name); };
  const Tensor pooled =
      (tensor("pooler.dense.weight").matmul(first) + tensor("pooler.dense.bias")).tanh();
  const Tensor expected =
      (tensor("classifier.weight").matmul(pooled) + tensor("classifier.bias")).sigmoid();
  export_model(out, folder / "written");
  import_model(folder / "written", folder / "again");
  for (const std::string& name : {out, folder / "again"}) {
    const Model model(name);
    EXPECT_TRUE(model.answer_kind().is_label_set());
    const auto found = model.classify({text});
    ASSERT_EQ(found.at(0).size(), 3U);
    for (const auto& [label, probability] : found.at(0))
      EXPECT_NEAR(probability, expected[label[0] - 'a'].item<double>(), 1e-5);
  }
}

TEST(ImportedHeads, PoolInSeveralWays) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("BertModel");
  foreign.files["modules.json"] = {{{"path", ""}, {"type", "models.Transformer"}},
                                   {{"path", "1_Pooling"}, {"type", "models.Pooling"}}};
  const auto vector_of = [&](const json& pooling, const std::string& name) {
    foreign.files["1_Pooling/config.json"] = pooling;
    foreign.write(folder / name);
    import_model(folder / name, folder / (name + "-ours"));
    export_model(folder / (name + "-ours"), folder / (name + "-written"));
    import_model(folder / (name + "-written"), folder / (name + "-again"));
    const auto embedded = [&](const char* kind) {
      return Model(folder / (name + kind)).embed({"the cat sees"}).at(0);
    };
    const Embedding found = embedded("-ours");
    EXPECT_EQ(embedded("-again").whole, found.whole);
    const Tensor tokens = at::tensor(found.vectors).view({-1, found.depth});
    return std::pair{at::tensor(found.whole), tokens};
  };
  // Flags have a fixed order.
  const auto [flags, tokens] =
      vector_of({{"pooling_mode_max_tokens", true}, {"pooling_mode_cls_token", true}}, "flags");
  EXPECT_TRUE(flags.equal(at::cat({tokens[0], tokens.amax(0)})));
  const auto [listed, same] = vector_of({{"pooling_mode", {"lasttoken", "cls"}}}, "listed");
  EXPECT_TRUE(listed.equal(at::cat({same[-1], same[0]})));
}

// In the layout of sentence-transformers.
TEST(ImportedHeads, ReadTheVectorOfAText) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("BertModel");
  foreign.files["modules.json"] = {{{"path", ""}, {"type", "models.Transformer"}},
                                   {{"path", "1_Pooling"}, {"type", "models.Pooling"}},
                                   {{"path", "2_Dense"}, {"type", "models.Dense"}},
                                   {{"path", "3_Normalize"}, {"type", "models.Normalize"}}};
  foreign.files["1_Pooling/config.json"] = {{"pooling_mode_cls_token", true}};
  json& dense = foreign.files["2_Dense/config.json"];
  dense = {{"in_features", 8},
           {"out_features", 3},
           {"bias", true},
           {"activation_function", "torch.nn.modules.activation.Tanh"}};
  const Tensor weight = by_formula(1, {3, 8}, false), bias = by_formula(2, {3}, false);
  const auto made_of = [&](const std::string& name, const TensorFile& layer) {
    foreign.write(folder / name);
    write_safetensors(folder / (name + "/2_Dense/model.safetensors"), layer);
    import_model(folder / name, folder / (name + "-ours"));
    const Embedding found = Model(folder / (name + "-ours")).embed({"the cat sees"}).at(0);
    const std::vector<float> first(found.vectors.begin(), found.vectors.begin() + found.depth);
    return std::pair{at::tensor(first), at::tensor(found.whole)};
  };
  const auto [first, whole] =
      made_of("tanh", {{{"linear.weight", weight}, {"linear.bias", bias}}, {}});
  const Tensor made = (weight.matmul(first) + bias).tanh();
  EXPECT_LT((whole - made / made.norm()).abs().max().item<double>(), 1e-6);
  dense["bias"] = false;
  dense["activation_function"] = "torch.nn.modules.linear.Identity";
  const auto [same, other] = made_of("identity", {{{"linear.weight", weight}}, {}});
  const Tensor line = weight.matmul(same);
  EXPECT_LT((other - line / line.norm()).abs().max().item<double>(), 1e-6);
  const auto refusal = [&](const char* key, const json& value) {
    const json before = dense[key];
    dense[key] = value;
    const std::string message = test::error_of([&] {
      made_of(key, {{{"linear.weight", weight}}, {}});
    });
    dense[key] = before;
    return message;
  };
  EXPECT_THAT(refusal("in_features", 7), HasSubstr("in_features is 7, and vectors have depth 8"));
  EXPECT_THAT(refusal("activation_function", "torch.nn.GELU"), HasSubstr("'torch.nn.GELU'"));
  EXPECT_THAT(refusal("bias", true), HasSubstr("'text_layer.linear.bias' is missing"));
  EXPECT_THAT(refusal("module_output_name", "x"), HasSubstr("module_output_name is"));
  EXPECT_THAT(refusal("use_residual", true), HasSubstr("use_residual is"));
  // In the layout of sentence-transformers 6.
  dense["module_input_name"] = dense["module_output_name"] = "sentence_embedding";
  made_of("newer", {{{"linear.weight", weight}}, {}});
}

// The error message for a changed folder.
std::string refused(const std::string& name, const std::function<void(ForeignFolder&)>& change) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign(name);
  change(foreign);
  foreign.write(folder / "theirs");
  return test::error_of([&] { import_model(folder / "theirs", folder / "ours"); });
}

TEST(ImportedHeads, AreRefusedByName) {
  const auto with = [](const json& labels, const json& problem) {
    return refused("DistilBertForSequenceClassification", [&](ForeignFolder& foreign) {
      foreign.config()["id2label"] = labels;
      foreign.config()["problem_type"] = problem;
    });
  };
  EXPECT_THAT(with({{"0", "a"}}, "single_label_classification"),
              HasSubstr("problem_type is 'single_label_classification', and 1 labels are read as "
                        "regression only"));
}

}  // namespace heads_test
}  // namespace attend
