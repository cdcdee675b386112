#include "attend/models/pair_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/files/safetensors.h"
#include "attend/models/classifier.h"
#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/parameters_file.h"
#include "attend/models/seq2seq_config.h"
#include "tests/support/files.h"

namespace attend {
namespace pair_model_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::vector<Example> examples = {{"cab", {"K AE B"}}, {"bad", {"B AE D", "B AA D"}}};

class PairModelTest : public testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(21);
    ModelConfig config;
    auto& sizes = config.of<Seq2SeqConfig>();
    sizes.embedding = sizes.hidden = sizes.attention_depth = 8;
    sizes.maximum_source_length = 4;
    model = make_pair_model({}, config, examples);
  }

  void save() const {
    save_description(model, folder);
    save_weights(*model.network, folder / "weights.safetensors");
  }
  std::string refusal() const {
    try {
      load_pair_model(folder);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  PairModel model;
};

TEST_F(PairModelTest, KnowsTheLanguagesOfTraining) {
  TextConfig text;
  text.language_token = true;
  const std::vector<Example> translated = {{"<2de> cab", {"K AE B"}}, {"<2fr> cab", {"B AE"}}};
  const PairModel joint = make_pair_model(text, model.config, translated);
  const auto ids = joint.source_ids(joint.codecs.source.split_source("<2fr> bac"));
  EXPECT_EQ(joint.source_vocabulary.decode(ids),
            (std::vector<std::string>{"<2fr>", "b", "a", "c"}));
  const auto refused = [&](const std::string& source) {
    return test::error_of([&] { joint.encode({{source, {"K"}}}); });
  };
  EXPECT_THAT(refused("<2it> cab"), HasSubstr("language '<2it>' was not in training"));
  EXPECT_THAT(refused("<2it> cab"), HasSubstr("there are '<2de>', '<2fr>'"));
  EXPECT_THAT(refused("<unk> cab"), HasSubstr("was not in training"));
  EXPECT_THAT(refused("cab"), HasSubstr("begins with no language"));
  EXPECT_THAT(refused("<2de> xyz"), testing::IsEmpty()) << "other tokens may be unknown";
}

TEST_F(PairModelTest, EncodesEveryTargetAndCutsLongSources) {
  const auto pairs = model.encode({{"bad", {"B AE D", "B AA D"}}, {"abcabc", {"K"}}});
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_EQ(pairs[0].source, pairs[1].source);
  EXPECT_EQ(model.target_text(pairs[1].target), "B AA D");
  EXPECT_EQ(pairs[2].source.size(), 4U);
}

TEST_F(PairModelTest, LoadsWhatItSaved) {
  save();
  const PairModel loaded = load_pair_model(folder);
  EXPECT_EQ(loaded.config.of<Seq2SeqConfig>().hidden, 8);
  EXPECT_EQ(loaded.source_vocabulary.size(), model.source_vocabulary.size());
  const auto before = model.network->parameters();
  const auto after = loaded.network->parameters();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(torch::equal(before[i], after[i]));
}

TEST_F(PairModelTest, RefusesAFolderThatIsNone) {
  EXPECT_THAT(refusal(), HasSubstr("config.toml"));
  fs::remove_all(folder);
  EXPECT_THAT(refusal(), HasSubstr("no such model folder"));
}

TEST_F(PairModelTest, RefusesMissingWeights) {
  save_description(model, folder);
  EXPECT_THAT(refusal(), HasSubstr("weights.safetensors"));
}

TEST_F(PairModelTest, RefusesAVocabularyOfAnotherSize) {
  save();
  write_file(folder / "source.vocab", read_file(folder / "source.vocab") + "z\n");
  EXPECT_THAT(refusal(), HasSubstr("source_embedding.weight has shape"));
}

TEST_F(PairModelTest, RefusesMissingAndForeignTensors) {
  save();
  const std::string path = folder / "weights.safetensors";
  TensorFile file = read_safetensors(path);
  const auto taken = file.tensors.extract("output.bias");
  write_safetensors(path, file);
  EXPECT_THAT(refusal(), HasSubstr("output.bias is missing"));
  file.tensors["output.bias"] = taken.mapped();
  file.tensors["stranger"] = at::zeros({1});
  write_safetensors(path, file);
  EXPECT_THAT(refusal(), HasSubstr("'stranger' belongs to no parameter"));
}

TEST_F(PairModelTest, RefusesAnUnknownKeyWithASuggestion) {
  save();
  write_file(folder / "config.toml", "[model]\nhiden = 8\n");
  EXPECT_THAT(refusal(), HasSubstr("model.hidden"));
}

TEST_F(PairModelTest, LoadsADescriptionFromBeforeThereWereTypes) {
  save();
  std::string description = read_file(folder / "config.toml");
  const size_t begin = description.find("type = \"seq2seq\"\n");
  ASSERT_NE(begin, std::string::npos);
  write_file(folder / "config.toml",
             description.erase(begin, std::string("type = \"seq2seq\"\n").size()));
  EXPECT_EQ(refusal(), "");
}

class ClassifierModelTest : public PairModelTest {
 protected:
  void SetUp() override {
    PairModelTest::SetUp();
    ModelConfig config;
    config.type = "classifier";
    config.of<ClassifierConfig>().pooling = Pooling::fixed_mlp;
    config.of<ClassifierConfig>().depth = config.of<ClassifierConfig>().attention_depth = 8;
    TextConfig text = config.row().text;
    text.minimum_count = 2;
    model = make_pair_model(text, config, reviews);
  }

  const std::vector<Example> reviews = {{"was great", {" very good "}}, {"was not", {"bad"}}};
};

TEST_F(ClassifierModelTest, LoadsWhatItSavedWithItsOwnKeysAlone) {
  save();
  const std::string description = read_file(folder / "config.toml");
  EXPECT_THAT(description, HasSubstr("pooling = \"fixed_mlp\""));
  EXPECT_THAT(description, Not(HasSubstr("encoder_layers")));
  const PairModel loaded = load_pair_model(folder);
  EXPECT_TRUE(loaded.answer_kind().is_label());
  EXPECT_EQ(loaded.config.of<ClassifierConfig>().depth, 8);
  EXPECT_TRUE(loaded.network->attends());
  EXPECT_EQ(loaded.source_vocabulary.size(), 5) << "one word occurs twice";
}

TEST_F(ClassifierModelTest, TakesAWholeTargetForALabelHoweverRare) {
  const auto pairs = model.encode(reviews);
  ASSERT_EQ(pairs[0].target.size(), 1U);
  EXPECT_EQ(model.target_text(pairs[0].target), "very good");
  EXPECT_NO_THROW(check_labels(model, tokenise_examples(reviews, model.codecs), "valid.tsv"));
}

TEST_F(ClassifierModelTest, RefusesALabelThatTrainingDidNotHave) {
  const auto refusal = [&](const std::string& label) {
    const TokenisedExamples examples = tokenise_examples({{"was", {"bad", label}}}, model.codecs);
    return test::error_of([&] { check_labels(model, examples, "test.tsv"); });
  };
  EXPECT_EQ(
      refusal("poor"),
      "test.tsv: label 'poor' of 'was' was not in training; the training labels are 'bad', 'very "
      "good'");
  std::vector<std::string> remarks;
  check_labels(model, tokenise_examples({{"was", {"poor", "bad", "poor"}}}, model.codecs),
               "test.tsv", [&](const std::string& line) { remarks.push_back(line); });
  EXPECT_THAT(remarks,
              testing::ElementsAre(HasSubstr("test.tsv: training lacks 1 label of 2 targets "
                                             "(first 'poor' in test.tsv)")));
  model.text.target_units = "space";
  model.codecs = make_codecs(model.text);
  EXPECT_THAT(refusal("very good"), HasSubstr("'very good' is 2 tokens of data.target_units"));
}

TEST_F(ClassifierModelTest, RefusesWeightsOfAFarSmallerModel) {
  save();
  std::string description = read_file(folder / "config.toml");
  description.replace(description.find("\ndepth = 8"), 10, "\ndepth = 65536");
  write_file(folder / "config.toml", description);
  EXPECT_THAT(refusal(), HasSubstr("model.depth = 65536 asks for"));
}

TEST_F(PairModelTest, KeepsCodesAndAllBytes) {
  const std::string codes = folder / "my.codes";
  write_file(codes, "#version: 0.2\na b</w>\n");
  TextConfig text;
  text.source_units = "bpe";
  text.target_units = "byte";
  text.bpe = codes;
  model = make_pair_model(text, model.config, examples);
  EXPECT_EQ(model.target_vocabulary.size(), 4 + 256);
  EXPECT_EQ(model.codecs.source.split("cab"), (std::vector<std::string>{"c@@", "ab"}));
  save();
  fs::remove(codes);
  EXPECT_TRUE(fs::exists(folder / "bpe.codes"));
  const fs::path moved = folder.string() + "-moved";
  fs::rename(folder, moved);
  const PairModel loaded = load_pair_model(moved);
  EXPECT_EQ(loaded.codecs.source.split("cab"), model.codecs.source.split("cab"));
  const auto pairs = loaded.encode(examples);
  EXPECT_EQ(pairs[0].target, model.encode(examples)[0].target);
  EXPECT_EQ(loaded.target_text(pairs[0].target), "K AE B");
  fs::rename(moved, folder);
}

}  // namespace pair_model_test
}  // namespace attend
