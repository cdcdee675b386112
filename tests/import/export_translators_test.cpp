// Export of imported translators, before and after training.

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

#include "attend/base/error.h"
#include "attend/import/export_model.h"
#include "attend/text/vocabulary.h"
#include "tests/import/foreign_folder.h"

namespace attend {
namespace export_translators_test {

using test::contents;
using test::ForeignFolder;
using test::json;
using testing::HasSubstr;

constexpr const char *marian = "MarianMTModel", *t5 = "T5ForConditionalGeneration",
                     *nllb = "M2M100ForConditionalGeneration",
                     *mbart = "MBartForConditionalGeneration", *gpt2 = "GPT2LMHeadModel";

// NLLB's model with the tokenizer of M2M100.
ForeignFolder m2m100() {
  ForeignFolder folder(nllb);
  folder.files["sentencepiece.bpe.model"] = ForeignFolder(mbart).files["sentencepiece.bpe.model"];
  folder.files.erase("tokenizer.json");
  folder.files["tokenizer_config.json"] = {
      {"tokenizer_class", "M2M100Tokenizer"}, {"src_lang", "de"}, {"bos_token", "<s>"}};
  folder.files["vocab.json"] = {{"<s>", 0},   {"<pad>", 1},     {"</s>", 2},
                                {"<unk>", 3}, {"\u2581the", 4}, {"\u2581sees", 5}};
  constexpr int64_t known = 6, languages = 100, surplus = 8;
  folder.files["generation_config.json"]["forced_bos_token_id"] = known + 11;
  folder.config()["vocab_size"] = known + languages + surplus;
  const int64_t depth = folder.tensors["model.shared.weight"].size(1);
  folder.tensors["model.shared.weight"] =
      test::by_formula(7, {known + languages + surplus, depth}, /*is_norm=*/false);
  return folder;
}

std::vector<ForeignFolder> translators() {
  return {ForeignFolder(marian), ForeignFolder(t5),    ForeignFolder(nllb), m2m100(),
          ForeignFolder(mbart),  test::mbart_of_2020()};
}

using Change = std::function<void(std::map<std::string, at::Tensor>&)>;

// Changes the folder as if an earlier version had imported it.
void make_older(const std::string& folder) {
  const std::string path = folder + "/config.toml";
  std::istringstream lines(contents(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("fixed_biases") && !line.starts_with("shared_tokens"))
      kept += line + "\n";
  std::ofstream(path) << kept;
}

// An imported folder, and its export after a change of the weights.
struct Exported {
  explicit Exported(const ForeignFolder& given, const Change& change = {}, bool is_older = false) {
    given.write(folder / "theirs");
    import_model(folder / "theirs", folder / "ours");
    if (is_older) make_older(folder / "ours");
    if (change) {
      TensorFile weights = read_safetensors(folder / "ours/weights.safetensors");
      for (auto& [name, tensor] : weights.tensors) tensor = tensor.clone();
      change(weights.tensors);
      write_safetensors(folder / "ours/weights.safetensors", weights);
    }
    made = export_model(folder / "ours", folder / "written");
  }
  std::map<std::string, at::Tensor> tensors() const {
    return read_safetensors(folder / "written/model.safetensors").tensors;
  }
  json document(const std::string& name) const {
    return json::parse(contents(folder / ("written/" + name)));
  }
  // Checks that the export is read as the same model.
  void expect_same_after_import() const {
    import_model(folder / "written", folder / "again");
    const std::string again = folder / "again/", ours = folder / "ours/";
    for (const char* name : {"weights.safetensors", "config.toml", "source.vocab"})
      EXPECT_TRUE(contents(again + name) == contents(ours + name))
          << name << " of " << made.architecture;
  }

  test::TemporaryFolder folder;
  ExportedModel made;
};

std::set<std::string> names_of(const std::map<std::string, at::Tensor>& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(name);
  return names;
}

TEST(ExportedTranslators, AreWhatWasImported) {
  std::vector<ForeignFolder> all = translators();
  all.emplace_back(gpt2);
  for (const ForeignFolder& foreign : all) {
    const Exported exported(foreign);
    EXPECT_EQ(names_of(Exported(foreign, {}, /*is_older=*/true).tensors()),
              names_of(foreign.tensors));
    EXPECT_EQ(exported.made.architecture, foreign.files["config.json"]["architectures"][0]);
    const auto found = exported.tensors();
    EXPECT_EQ(names_of(found), names_of(foreign.tensors)) << exported.made.architecture;
    for (const auto& [name, tensor] : foreign.tensors) {
      if (name.find("embed_positions") != name.npos) continue;  // rows without a position are zeros
      EXPECT_TRUE(found.at(name).equal(tensor)) << name << " of " << exported.made.architecture;
    }
    exported.expect_same_after_import();
  }
}

TEST(ExportedTranslators, KeepTheirLanguages) {
  const Exported exported{ForeignFolder(nllb)};
  const json tokenizer = exported.document("tokenizer_config.json");
  EXPECT_EQ(tokenizer["tokenizer_class"], "NllbTokenizer");
  EXPECT_EQ(tokenizer["src_lang"], "eng_Latn");
  EXPECT_EQ(tokenizer["tgt_lang"], "fra_Latn");
  EXPECT_EQ(tokenizer["additional_special_tokens"],
            json({"deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans"}));
  EXPECT_EQ(exported.document("generation_config.json")["forced_bos_token_id"], 79);
  EXPECT_FALSE(exported.document("tokenizer.json").contains("languages"));
  const Exported pieces{m2m100()};
  EXPECT_EQ(pieces.document("tokenizer_config.json")["tokenizer_class"], "M2M100Tokenizer");
  EXPECT_EQ(pieces.document("tokenizer_config.json")["src_lang"], "de");
  EXPECT_EQ(pieces.document("generation_config.json")["forced_bos_token_id"], 17);
  EXPECT_EQ(pieces.document("vocab.json"), m2m100().files["vocab.json"]);
  EXPECT_EQ(contents(pieces.folder / "written/sentencepiece.bpe.model"),
            contents(pieces.folder / "theirs/sentencepiece.bpe.model"));
}

TEST(ExportedTranslators, WithTheLanguageLastSaySo) {
  ForeignFolder foreign(nllb);
  foreign.files["tokenizer_config.json"]["legacy_behaviour"] = true;
  const Exported exported(foreign);
  EXPECT_EQ(exported.document("tokenizer_config.json")["legacy_behaviour"], true);
  exported.expect_same_after_import();
}

TEST(ExportedTranslators, HaveTheLengthsOfTheirSearch) {
  for (const char* name : {nllb, t5}) {
    ForeignFolder foreign(name);
    json& generation = foreign.files["generation_config.json"];
    if (!generation.is_object()) generation = json::object();
    generation.update({{"max_length", 20},
                       {"min_length", 4},
                       {"num_beams", 3},
                       {"forced_eos_token_id", foreign.config()["eos_token_id"]}});
    const Exported exported(foreign);
    for (const auto& [key, value] : generation.items())
      EXPECT_EQ(exported.document("generation_config.json")[key], value) << key;
    exported.expect_same_after_import();
  }
}

// The vectors of a source, of answers and of the output stay one table, because tokens that begin
// and end answers share theirs.
TEST(ExportedTranslators, HaveOneTableAfterTraining) {
  std::vector<ForeignFolder> all = translators();
  all.emplace_back(gpt2);
  for (const ForeignFolder& foreign : all) {
    const bool is_lm = foreign.files["config.json"]["model_type"] == "gpt2";
    const char *ours = is_lm ? "embedding.tokens.weight" : "source_embedding.tokens.weight",
               *theirs = is_lm                                       ? "transformer.wte.weight"
                         : foreign.tensors.contains("shared.weight") ? "shared.weight"
                                                                     : "model.shared.weight";
    const at::Tensor before = foreign.tensors.at(theirs);
    const at::Tensor steps =
        at::arange(1, before.size(0) + 1, before.options()).unsqueeze(1).expand_as(before) / 64;
    const Exported exported(foreign, [&](std::map<std::string, at::Tensor>& weights) {
      at::Tensor& rows = weights.at(ours);
      // Our fixed tokens change with the tokens of equal vectors.
      constexpr int64_t fixed = Vocabulary::unknown + 1;
      for (int64_t row = 0; row < fixed; ++row)
        rows[row] += steps[(before == rows[row]).all(1).nonzero()[0].item<int64_t>()];
      rows.slice(0, fixed) += steps;
    });
    EXPECT_EQ(names_of(exported.tensors()), names_of(foreign.tensors))
        << exported.made.architecture;
    EXPECT_TRUE(exported.tensors().at(theirs).equal(before + steps)) << exported.made.architecture;
    EXPECT_NE(exported.document("config.json").value("tie_word_embeddings", true), false);
    exported.expect_same_after_import();
  }
}

// Without model.shared_tokens, training gives the tokens that begin and end answers vectors of
// their own. Marian has vectors of its own for padding, which begins answers.
TEST(ExportedTranslators, HaveSeparateTablesAfterTraining) {
  for (const ForeignFolder& foreign :
       {ForeignFolder(marian), ForeignFolder(nllb), m2m100(), ForeignFolder(mbart)}) {
    const Exported exported(
        foreign,
        [](std::map<std::string, at::Tensor>& weights) {
          at::Tensor& tokens = weights["source_embedding.tokens.weight"];
          for (const int64_t id : {Vocabulary::bos, Vocabulary::eos})
            tokens[id] += 0.25 * static_cast<double>(id);
        },
        /*is_older=*/true);
    const auto tensors = exported.tensors();
    const json config = exported.document("config.json");
    const at::Tensor shared = tensors.at("model.shared.weight"),
                     answers = tensors.at("model.decoder.embed_tokens.weight"),
                     output = tensors.at("lm_head.weight"),
                     before = foreign.tensors.at("model.shared.weight");
    EXPECT_TRUE(tensors.at("model.encoder.embed_tokens.weight").equal(shared));
    EXPECT_EQ(config["tie_word_embeddings"], false);
    const int64_t begin = config["decoder_start_token_id"], end = config["eos_token_id"],
                  padding = config["pad_token_id"];
    EXPECT_TRUE(answers[begin].allclose(before[begin] + 0.25));
    EXPECT_TRUE(output[end].allclose(before[end] + 0.5));
    for (int64_t token = 0; token < before.size(0); ++token) {
      EXPECT_TRUE(token == padding || shared[token].equal(before[token])) << token;
      EXPECT_TRUE(token == begin || answers[token].equal(before[token])) << token;
      EXPECT_TRUE(token == end || output[token].equal(before[token])) << token;
    }
    import_model(exported.folder / "written", exported.folder / "again");
    auto ours = read_safetensors(exported.folder / "ours/weights.safetensors").tensors,
         again = read_safetensors(exported.folder / "again/weights.safetensors").tensors;
    // No source has padding, and answers of Marian never do.
    const int64_t unused = Vocabulary::unknown + 1 + padding;
    for (auto* weights : {&ours, &again})
      (*weights)["source_embedding.tokens.weight"] =
          (*weights)["source_embedding.tokens.weight"].index_fill(0, at::tensor({unused}), 0);
    for (const auto& [name, tensor] : ours) EXPECT_TRUE(again.at(name).equal(tensor)) << name;
  }
}

TEST(ExportedTranslators, RefuseScoresThatTheirClassLacks) {
  for (const char* name : {nllb, t5}) {
    const std::string message = test::error_of([&] {
      Exported(ForeignFolder(name),
               [](std::map<std::string, at::Tensor>& weights) { weights["output_bias"][9] = 0.5; });
    });
    EXPECT_THAT(message, HasSubstr("output_bias holds token scores from training"));
    EXPECT_THAT(message, HasSubstr("model.fixed_output_bias = true"));
  }
}

// Folders of earlier versions change in training what the foreign classes lack.
TEST(ExportedTranslators, RefuseOlderFoldersAfterTraining) {
  const auto refusal = [](const char* name, const Change& change) {
    return test::error_of([&] { Exported(ForeignFolder(name), change, /*is_older=*/true); });
  };
  EXPECT_THAT(refusal(t5, [](auto& all) { all["encoder.layer0_self.query.bias"][0] = 1; }),
              HasSubstr("is not 0 after training, and T5ForConditionalGeneration lacks it; train a "
                        "new import, which has model.fixed_biases = true"));
  for (const int64_t id : {Vocabulary::bos, Vocabulary::eos}) {
    EXPECT_THAT(refusal(t5, [&](auto& all) { all["source_embedding.tokens.weight"][id] += 1; }),
                HasSubstr("train a new import, which has model.shared_tokens"));
    EXPECT_THAT(refusal(gpt2, [&](auto& all) { all["embedding.tokens.weight"][id] += 1; }),
                HasSubstr("train a new import, which has model.shared_tokens"));
  }
  EXPECT_THAT(refusal(gpt2, [](auto& all) { all["output_bias"][9] = 0.5; }),
              HasSubstr("output_bias holds token scores from training"));
}

}  // namespace export_translators_test
}  // namespace attend
