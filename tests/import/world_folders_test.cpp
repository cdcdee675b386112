// Tests of folders by other releases and programs, with their keys, tensor names and labels.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "attend/import/export_model.h"
#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace world_folders_test {

using test::by_formula;
using test::ForeignFolder;
using test::json;
using test::refused;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Change = std::function<void(ForeignFolder&)>;

// Imports the folder of this golden case after a change, and the unchanged one.
struct Imported {
  explicit Imported(
      const std::string& name, const Change& change = [](ForeignFolder&) {}) {
    ForeignFolder foreign(name);
    foreign.write(folder / "plain");
    change(foreign);
    foreign.write(folder / "theirs");
    import_model(folder / "plain", folder / "plain-ours");
    made = import_model(folder / "theirs", folder / "ours");
  }

  bool has_the_weights_of_the_plain_one() const {
    return test::contents(folder / "ours/weights.safetensors") ==
           test::contents(folder / "plain-ours/weights.safetensors");
  }
  std::string ours() const { return folder / "ours"; }

  test::TemporaryFolder folder;
  ImportedModel made;
};

void rename(ForeignFolder& foreign, const std::string& name, const std::string& newer) {
  auto node = foreign.tensors.extract(name);
  ASSERT_FALSE(node.empty()) << name;
  node.key() = newer;
  foreign.tensors.insert(std::move(node));
}

TEST(WorldFolders, LeaveUnknownKeysAsideWithOneNote) {
  const Imported imported("BertModel", [](ForeignFolder& foreign) {
    json& config = foreign.config();
    config["adapters"] = {{"a", 1}};
    config["language"] = "de";
    config["_num_labels"] = 3;
    config["_attn_implementation_autoset"] = true;
    config["tie_word_embeddings"] = false;  // the class lacks an output
    config["problem_type"] = "multi_label_classification";
  });
  ASSERT_EQ(imported.made.notes.size(), 1U);
  EXPECT_THAT(imported.made.notes[0], HasSubstr("config.json: ignored, because they change no "
                                                "result: 'adapters', 'language'"));
  EXPECT_TRUE(imported.has_the_weights_of_the_plain_one());
}

TEST(WorldFolders, HaveNoNotesIfAllIsKnown) {
  for (const char* name : {"BertModel", "GPT2LMHeadModel", "MarianMTModel", "ModernBertModel",
                           "ViTForImageClassification", "DistilBertForSequenceClassification"})
    EXPECT_THAT(Imported(name).made.notes, IsEmpty()) << name;
}

TEST(WorldFolders, AreRefusedForWhatChangesResults) {
  const auto with = [](const char* key, const json& value) {
    return refused("BertModel", [&](ForeignFolder& foreign) { foreign.config()[key] = value; });
  };
  EXPECT_THAT(with("auto_map", {{"AutoModel", "code.Model"}}), HasSubstr("has its own code"));
  EXPECT_THAT(with("quantization_config", {{"bits", 4}}), HasSubstr("quantised weights are not"));
  EXPECT_THAT(with("architectures", json::array({"BertForMultipleChoice"})),
              HasSubstr("(chooses between pairs of texts), which is not read; BertModel"));
  EXPECT_THAT(with("architectures", json::array()), HasSubstr("architectures names no class"));
  EXPECT_THAT(
      refused("ViTForImageClassification",
              [](ForeignFolder& foreign) { foreign.config()["architectures"] = {"ViTModel"}; }),
      HasSubstr("(vectors of images, which no model type here gives)"));
}

TEST(WorldFolders, MayHaveNormsNamedAsInTensorFlow) {
  const Imported imported("BertForMaskedLM", [](ForeignFolder& foreign) {
    std::vector<std::string> norms;
    for (const auto& [name, tensor] : foreign.tensors)
      if (name.find("LayerNorm.") != name.npos) norms.push_back(name);
    ASSERT_FALSE(norms.empty());
    for (const std::string& name : norms) {
      const bool is_weight = name.ends_with("weight");
      const std::string stem = name.substr(0, name.rfind('.'));
      rename(foreign, name, stem + (is_weight ? ".gamma" : ".beta"));
    }
  });
  EXPECT_TRUE(imported.has_the_weights_of_the_plain_one());
}

// Safetensors stores only one of two tied tensors, under either name.
TEST(WorldFolders, MayHaveTheOutputInPlaceOfTheEmbedding) {
  const auto check = [](const char* name, const char* embedding, const char* output) {
    const Imported imported(name,
                            [&](ForeignFolder& foreign) { rename(foreign, embedding, output); });
    EXPECT_TRUE(imported.has_the_weights_of_the_plain_one()) << name;
  };
  check("GPT2LMHeadModel", "transformer.wte.weight", "lm_head.weight");
  check("MarianMTModel", "model.shared.weight", "lm_head.weight");
  check("BertForMaskedLM", "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.weight");
  EXPECT_THAT(
      refused("GPT2LMHeadModel",
              [](ForeignFolder& foreign) { foreign.config()["tie_word_embeddings"] = false; }),
      HasSubstr("tie_word_embeddings of config.json is false, and tensor 'lm_head.weight' "
                "is missing"));
}

TEST(WorldFolders, MayHaveTensorsOfOtherHeads) {
  const Imported imported("RobertaForMaskedLM", [](ForeignFolder& foreign) {
    foreign.tensors["roberta.pooler.dense.weight"] = by_formula(1, {8, 8}, false);
    foreign.tensors["roberta.pooler.dense.bias"] = by_formula(2, {8}, false);
    foreign.tensors["roberta.embeddings.position_ids"] = at::arange(40).unsqueeze(0);
    foreign.tensors["classifier.out_proj.weight"] = by_formula(3, {2, 8}, false);
  });
  ASSERT_EQ(imported.made.notes.size(), 1U);
  EXPECT_THAT(imported.made.notes[0],
              HasSubstr("ignored, because RobertaForMaskedLM has no such part: "
                        "classifier.out_proj.weight"));
  EXPECT_TRUE(imported.has_the_weights_of_the_plain_one());
}

TEST(WorldFolders, MayHaveAPoolerBelowLabels) {
  const Imported roberta("RobertaForMaskedLM", [](ForeignFolder& foreign) {
    foreign.config()["architectures"] = {"RobertaForSequenceClassification"};
    foreign.tensors["roberta.pooler.dense.weight"] = by_formula(1, {8, 8}, false);
    foreign.tensors["classifier.dense.weight"] = by_formula(2, {8, 8}, false);
    foreign.tensors["classifier.dense.bias"] = by_formula(3, {8}, false);
    foreign.tensors["classifier.out_proj.weight"] = by_formula(4, {2, 8}, false);
    foreign.tensors["classifier.out_proj.bias"] = by_formula(5, {2}, false);
  });
  EXPECT_EQ(roberta.made.type, "classifier");
  const Imported vit("ViTForImageClassification", [](ForeignFolder& foreign) {
    foreign.tensors["vit.pooler.dense.weight"] = by_formula(1, {8, 8}, false);
  });
  EXPECT_TRUE(vit.has_the_weights_of_the_plain_one());
}

TEST(WorldFolders, MaySayTheirTypeAndClassByTensorsAlone) {
  const auto without = [](const char* name, const std::vector<const char*>& keys) {
    const Imported imported(name, [&](ForeignFolder& foreign) {
      for (const char* key : keys) foreign.config().erase(key);
    });
    EXPECT_TRUE(imported.has_the_weights_of_the_plain_one()) << name;
    EXPECT_EQ(imported.made.architecture, name);
    EXPECT_EQ(imported.made.notes.size(), keys.size());
  };
  for (const char* name :
       {"BertForMaskedLM", "DistilBertForSequenceClassification", "RobertaForMaskedLM",
        "GPT2LMHeadModel", "ModernBertForMaskedLM", "ModernBertModel", "ViTForImageClassification"})
    without(name, {"model_type", "architectures"});
  for (const char* name : {"BertModel", "MarianMTModel", "DeiTForImageClassification"}) {
    without(name, {"architectures"});
    without(name, {"model_type"});
  }
}

TEST(WorldFolders, AreRefusedWithWhatToWriteIfTensorsFitSeveralClasses) {
  const auto without = [](const char* key, const char* name, const Change& change) {
    return refused(name, [&](ForeignFolder& foreign) {
      foreign.config().erase(key);
      change(foreign);
    });
  };
  EXPECT_THAT(without("model_type", "BertModel",
                      [](ForeignFolder& foreign) { foreign.config().erase("architectures"); }),
              HasSubstr("config.json: has no model_type, and neither its class nor its tensors say "
                        "it; write one of bert, distilbert"));
  EXPECT_THAT(
      without("architectures", "ModernBertForSequenceClassification", [](ForeignFolder&) {}),
      HasSubstr("fit several of ModernBertForSequenceClassification, "
                "ModernBertForTokenClassification, ModernBertForQuestionAnswering; write "
                "\"architectures\""));
}

TEST(WorldFolders, MayHaveAnotherTypeThanTheirClass) {
  const Imported imported("MarianMTModel", [](ForeignFolder& foreign) {
    foreign.config()["model_type"] = "bart";
    foreign.config().erase("decoder_start_token_id");
  });
  EXPECT_TRUE(imported.has_the_weights_of_the_plain_one());
  EXPECT_THAT(imported.made.notes,
              ElementsAre(HasSubstr("read as model_type 'marian', as its class says")));
}

TEST(WorldFolders, MayLeaveTheMaskToTheirClass) {
  const Imported imported("RobertaForMaskedLM", [](ForeignFolder& foreign) {
    foreign.files.erase("tokenizer_config.json");
  });
  EXPECT_TRUE(imported.has_the_weights_of_the_plain_one());
  EXPECT_EQ(test::contents(imported.folder / "ours/source.vocab"),
            test::contents(imported.folder / "plain-ours/source.vocab"));
}

TEST(WorldFolders, MayBePretrainedOnPairsToo) {
  const Imported imported("BertForMaskedLM", [](ForeignFolder& foreign) {
    foreign.config()["architectures"] = {"BertForPreTraining"};
    foreign.tensors["cls.seq_relationship.weight"] = by_formula(1, {2, 8}, false);
    foreign.tensors["cls.seq_relationship.bias"] = by_formula(2, {2}, false);
    foreign.tensors["bert.pooler.dense.weight"] = by_formula(3, {8, 8}, false);
    foreign.tensors["bert.pooler.dense.bias"] = by_formula(4, {8}, false);
  });
  EXPECT_EQ(imported.made.type, "encoder");
  EXPECT_TRUE(imported.has_the_weights_of_the_plain_one());
}

// DistilBERT's labels by number.
std::vector<std::string> labels_of(const json& id2label, std::vector<std::string>& notes) {
  const Imported imported("DistilBertForSequenceClassification", [&](ForeignFolder& foreign) {
    foreign.config()["id2label"] = id2label;
    const auto count = static_cast<int64_t>(id2label.size());
    foreign.tensors["classifier.weight"] = by_formula(1, {count, 8}, false);
    foreign.tensors["classifier.bias"] = by_formula(2, {count}, false);
  });
  notes = imported.made.notes;
  return Model(imported.ours()).labels();
}

TEST(WorldFolders, MayHaveALabelTwice) {
  std::vector<std::string> notes;
  EXPECT_THAT(
      labels_of({{"0", "crane"}, {"1", "b"}, {"2", "crane"}, {"3", " b"}, {"4", "<unk>"}}, notes),
      ElementsAre("crane", "b", "crane (2)", "b (3)", "<unk> (4)"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("3 labels got their number, to differ from others: "
                                           "'crane (2)', 'b (3)', '<unk> (4)'")));
  EXPECT_THAT(labels_of({{"0", 7}, {"1", 1.5}, {"2", ""}}, notes),
              ElementsAre("7", "1.5", "LABEL_2"));
}

TEST(WorldFolders, MayHaveTagsWithBlanks) {
  const Imported imported("BertForMaskedLM", [](ForeignFolder& foreign) {
    foreign.config()["architectures"] = {"BertForTokenClassification"};
    foreign.config()["id2label"] = {{"0", "first name"}, {"1", "O"}, {"2", "O"}};
    foreign.tensors["classifier.weight"] = by_formula(1, {3, 8}, false);
    foreign.tensors["classifier.bias"] = by_formula(2, {3}, false);
  });
  const std::string labels = test::contents(imported.folder / "ours/target.vocab");
  EXPECT_THAT(labels, AllOf(HasSubstr("first_name\n"), HasSubstr("O\n"), HasSubstr("O_(2)\n")));
}

TEST(WorldFolders, MayEndAnswersAtSeveralTokens) {
  const Imported one("GPT2LMHeadModel", [](ForeignFolder& foreign) {
    foreign.config()["eos_token_id"] = json::array({0});
  });
  EXPECT_THAT(one.made.notes, IsEmpty());
  EXPECT_TRUE(one.has_the_weights_of_the_plain_one());
  const Imported two("GPT2LMHeadModel", [](ForeignFolder& foreign) {
    foreign.files["generation_config.json"] = {{"eos_token_id", {0, 7}}};
    foreign.config()["eos_token_id"] = 9;
  });
  EXPECT_THAT(two.made.notes, ElementsAre(HasSubstr("eos_token_id names 2 tokens; only "
                                                    "the first, 0, ends answers")));
  EXPECT_TRUE(two.has_the_weights_of_the_plain_one());
}

TEST(WorldFolders, SayHowAnswersAreSearchedFor) {
  const Imported imported("MarianMTModel", [](ForeignFolder& foreign) {
    foreign.files["generation_config.json"] = {
        {"num_beams", 3},      {"length_penalty", 0.5},     {"max_length", 20},
        {"min_length", 3},     {"forced_eos_token_id", 0},  {"no_repeat_ngram_size", 2},
        {"max_time", nullptr}, {"bad_words_ids", {{85}}},   {"suppress_tokens", json::array()},
        {"do_sample", false},  {"temperature", 0.3},        {"early_stopping", true},
        {"new_key", 1},        {"transformers_version", ""}};
  });
  const std::vector<std::string>& notes = imported.made.notes;
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0], HasSubstr("generation_config.json: num_beams = 3 becomes decode.beam = 3, "
                                  "length_penalty = 0.5 becomes decode.length_penalty = 0.5, "
                                  "max_length = 20 becomes decode.maximum_length = 18, "
                                  "min_length = 3 becomes decode.minimum_length = 2"));
  EXPECT_THAT(notes[1], HasSubstr("not supported: no_repeat_ngram_size = 2, new_key = 1, "
                                  "early_stopping = true"));
  const Model model(imported.ours());
  const SearchOptions search = model.search_options();
  EXPECT_EQ(search.beam, 3);
  EXPECT_EQ(search.length_penalty, 0.5);
  EXPECT_EQ(search.maximum_length, 18);
  EXPECT_EQ(search.minimum_length, 2);
  const auto text = [&](const std::vector<Answer>& answers) { return answers[0].best().text; };
  EXPECT_EQ(text(model.answer({"the cat"})), text(model.answer({"the cat"}, search)));
  EXPECT_NE(text(model.answer({"the cat"})),
            text(model.answer({"the cat"}, {.maximum_length = 1})));
}

TEST(WorldFolders, SayItInConfigJsonIfTheyAreOlder) {
  const Imported imported("MarianMTModel", [](ForeignFolder& foreign) {
    foreign.config()["num_beams"] = 2;
    foreign.config()["max_length"] = 20;
    foreign.config()["bad_words_ids"] = {{85}, {5}};
    foreign.config().erase("forced_eos_token_id");  // the default forces the end
  });
  EXPECT_EQ(Model(imported.ours()).search_options().beam, 2);
  EXPECT_EQ(Model(imported.ours()).search_options().maximum_length, 18);
  ASSERT_EQ(imported.made.notes.size(), 2U);
  EXPECT_THAT(imported.made.notes[1], HasSubstr("not supported: bad_words_ids = [[85],[5]]"));
  const Imported other("BertModel", [](ForeignFolder& foreign) {
    foreign.config()["num_beams"] = 2;  // has no effect
    foreign.files["generation_config.json"] = {{"no_repeat_ngram_size", 2}};
  });
  EXPECT_THAT(other.made.notes, IsEmpty());
}

TEST(WorldFolders, OfContinuationsCountNewTokens) {
  const Imported imported("GPT2LMHeadModel", [](ForeignFolder& foreign) {
    foreign.files["generation_config.json"] = {{"max_length", 30}, {"max_new_tokens", 7}};
  });
  EXPECT_EQ(Model(imported.ours()).search_options().maximum_length, 7);
  const Imported whole("GPT2LMHeadModel", [](ForeignFolder& foreign) {
    foreign.files["generation_config.json"] = {{"max_length", 30}};
  });
  EXPECT_EQ(Model(whole.ours()).search_options().maximum_length, 0);
  EXPECT_THAT(whole.made.notes, ElementsAre(HasSubstr("not supported: max_length = 30")));
}

// Search settings of the exported folder, and config.toml after importing it again.
std::pair<json, std::string> searched_again(const std::string& name, const json& generation) {
  const Imported imported(
      name, [&](ForeignFolder& foreign) { foreign.files["generation_config.json"] = generation; });
  const std::string back = imported.folder / "back", again = imported.folder / "again";
  export_model(imported.ours(), back);
  import_model(back, again);
  EXPECT_EQ(test::contents(again + "/config.toml"),
            test::contents(imported.ours() + "/config.toml"));
  return {json::parse(test::contents(back + "/generation_config.json")),
          test::contents(again + "/config.toml")};
}

TEST(WorldFolders, AreExportedWithTheirSearch) {
  const json translation = {
      {"num_beams", 3},     {"length_penalty", 0.5},    {"max_length", 20},
      {"min_length", 3},    {"forced_eos_token_id", 0}, {"bad_words_ids", {{85}}},
      {"pad_token_id", 85}, {"eos_token_id", 0},        {"decoder_start_token_id", 85}};
  const auto [translator, translator_settings] = searched_again("MarianMTModel", translation);
  EXPECT_EQ(translator, translation);
  EXPECT_THAT(translator_settings,
              AllOf(HasSubstr("beam = 3\n"), HasSubstr("maximum_length = 18\n")));
  const json continuation = {{"num_beams", 2},
                             {"max_new_tokens", 7},
                             {"min_new_tokens", 2},
                             {"bos_token_id", 0},
                             {"eos_token_id", 0}};
  const auto [decoder, decoder_settings] = searched_again("GPT2LMHeadModel", continuation);
  EXPECT_EQ(decoder, continuation);
  EXPECT_THAT(decoder_settings, HasSubstr("minimum_length = 2\n"));
}

// Without beams transformers refuses to save a penalty, and a length that is not set is theirs.
TEST(WorldFolders, AreExportedWithoutASearchIfTheyHaveNone) {
  const auto [translator, settings] = searched_again("MarianMTModel", {{"num_beams", 1}});
  EXPECT_EQ(translator, json({{"bad_words_ids", {{85}}},
                              {"pad_token_id", 85},
                              {"eos_token_id", 0},
                              {"decoder_start_token_id", 85}}));
  const Imported greedy("MarianMTModel", [](ForeignFolder& foreign) {
    foreign.files["generation_config.json"] = {{"length_penalty", 0.5}};
  });
  export_model(greedy.ours(), greedy.folder / "back");
  EXPECT_THAT(test::contents(greedy.folder / "back/generation_config.json"),
              Not(HasSubstr("length_penalty")));
}

TEST(WorldFolders, MayNameNoClassOfImageProcessors) {
  const Imported imported("ViTForImageClassification", [](ForeignFolder& foreign) {
    json& file = foreign.files["preprocessor_config.json"];
    file.erase("image_processor_type");
    file["do_flip_channel_order"] = true;  // for other classes
  });
  EXPECT_EQ(test::contents(imported.folder / "ours/config.toml"),
            test::contents(imported.folder / "plain-ours/config.toml"));
  EXPECT_TRUE(imported.has_the_weights_of_the_plain_one());
  EXPECT_THAT(imported.made.notes, ElementsAre(HasSubstr("'do_flip_channel_order'")));
}

// In transformers 4 null means the rotary base of the global layers.
TEST(WorldFolders, MayTurnAllLayersOfModernBertAlike) {
  const auto bases = [](const json& local) {
    const Imported imported("ModernBertModel", [&](ForeignFolder& foreign) {
      foreign.config().erase("rope_parameters");
      foreign.config()["global_rope_theta"] = 300.0;
      foreign.config()["local_rope_theta"] = local;
    });
    return test::contents(imported.folder / "ours/config.toml");
  };
  EXPECT_THAT(bases(nullptr), AllOf(HasSubstr("rotary_bases = \"300; 300\"")));
  EXPECT_THAT(bases(20.0), HasSubstr("rotary_bases = \"300; 20\""));
}

TEST(WorldFolders, HoldAPointerOfGitLfsWhereWeightsWereNotFetched) {
  const std::string message = refused("BertModel", [](ForeignFolder& foreign) {
    foreign.tensors.clear();
    foreign.files["model.safetensors"] =
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 438\n";
  });
  EXPECT_THAT(message, HasSubstr("model.safetensors: is a pointer of Git LFS"));
  EXPECT_THAT(message, HasSubstr("git lfs pull"));
}

}  // namespace world_folders_test
}  // namespace attend
