#include "attend/models/pair_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/safetensors.h"
#include "attend/models/weights.h"

namespace attend {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<Example> examples = {{"cab", {"K AE B"}}, {"bad", {"B AE D", "B AA D"}}};

class PairModelTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("attend-pair-model-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    torch::manual_seed(21);
    Seq2SeqConfig config;
    config.embedding = config.hidden = config.attention_depth = 8;
    config.maximum_source_length = 4;
    model = make_pair_model({}, config, examples);
  }
  void TearDown() override { fs::remove_all(folder); }

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

  fs::path folder;
  PairModel model;
};

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
  EXPECT_EQ(loaded.model.hidden, 8);
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
  EXPECT_THAT(refusal(), HasSubstr("stranger belongs to no parameter"));
}

TEST_F(PairModelTest, RefusesAnUnknownKeyWithASuggestion) {
  save();
  write_file(folder / "config.toml", "[model]\nhiden = 8\n");
  EXPECT_THAT(refusal(), HasSubstr("model.hidden"));
}

}  // namespace
}  // namespace attend
