#include <gmock/gmock.h>

#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace older_files_test {

using test::ForeignFolder;
using test::json;
using test::refused;
using testing::HasSubstr;

TEST(OlderFiles, ReadsOlderVocabulariesAndCutsBeforeTheEnd) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("BertModel");
  foreign.write(folder / "newer");
  std::vector<std::string> tokens(foreign.files["tokenizer.json"]["model"]["vocab"].size());
  for (const auto& [token, id] : foreign.files["tokenizer.json"]["model"]["vocab"].items())
    tokens[id.get<size_t>()] = token;
  std::string lines;
  for (const std::string& token : tokens) lines += token + "\n";
  foreign.files.erase("tokenizer.json");
  foreign.files["vocab.txt"] = lines;
  foreign.files["sentence_bert_config.json"] = {{"max_seq_length", 5}};
  foreign.files["modules.json"] = {{{"path", ""}, {"type", "models.Transformer"}}};
  foreign.write(folder / "older");
  import_model(folder / "newer", folder / "one");
  import_model(folder / "older", folder / "two");
  const std::string text = "Paris, the CAT";
  const Model newer(folder / "one"), older(folder / "two");
  const std::vector<std::string> whole = newer.embed({text})[0].tokens;
  EXPECT_EQ(whole.front(), "[CLS]");
  EXPECT_EQ(whole.back(), "[SEP]");
  const std::vector<std::string> cut = older.embed({text})[0].tokens;
  ASSERT_EQ(cut.size(), 5U);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(cut[i], whole[i]);
  EXPECT_EQ(cut.back(), "[SEP]");
}

// Replaces tokenizer.json by vocab.json and merges.txt; ids stay.
void make_older(ForeignFolder& foreign) {
  const json model = foreign.files["tokenizer.json"]["model"];
  std::string lines = "#version: 0.2\n";
  for (const json& merge : model["merges"])
    lines += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  foreign.files["vocab.json"] = model["vocab"];
  foreign.files["merges.txt"] = lines;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) foreign.files.erase(name);
}

TEST(OlderFiles, ReadsOlderFilesOfBytePairs) {
  for (const char* name : {"RobertaForMaskedLM", "GPT2LMHeadModel"}) {
    const test::TemporaryFolder folder;
    ForeignFolder foreign(name);
    foreign.write(folder / "newer");
    make_older(foreign);
    foreign.write(folder / "older");
    import_model(folder / "newer", folder / "one");
    import_model(folder / "older", folder / "two");
    const TextTokenizer newer = TextTokenizer::load(folder / "one/tokenizer.json"),
                        older = TextTokenizer::load(folder / "two/tokenizer.json");
    for (const char* text : {"the cat  sat.", " Caf\u00e9 \u732b<|endoftext|> 12\n", "a</s>"})
      EXPECT_EQ(newer.split(text), older.split(text)) << name;
    for (const char* file : {"/config.toml", "/weights.safetensors", "/source.vocab"})
      EXPECT_EQ(test::contents(folder / "one" + file), test::contents(folder / "two" + file));
  }
}

TEST(OlderFiles, ReadsWhatOlderFilesSayOfTokens) {
  const test::TemporaryFolder folder;
  ForeignFolder foreign("RobertaForMaskedLM");
  const size_t count = foreign.files["tokenizer.json"]["model"]["vocab"].size();
  make_older(foreign);
  foreign.config()["vocab_size"] = count + 3;
  foreign.files["added_tokens.json"] = {{"<new>", count}, {"<other>", count + 1}};
  foreign.files["special_tokens_map.json"] = {
      {"mask_token", {{"content", "<mask>"}, {"lstrip", false}}},
      {"additional_special_tokens", {"<other>"}}};
  foreign.write(folder / "theirs");
  const std::string folder_of_theirs = folder / "theirs";
  const internal::JsonFile config = internal::read_foreign_config(folder_of_theirs);
  const TextTokenizer tokenizer =
      internal::read_foreign_tokenizer(folder_of_theirs,
                                       internal::read_tokenizer_settings(folder_of_theirs),
                                       internal::read_roberta(config.place()).older)
          .tokenizer;
  EXPECT_THAT(
      tokenizer.split("a <mask>b<new><other>"),
      testing::ElementsAre("[<s>]", "a", "\u0120", "<mask>", "b", "<new>", "<other>", "[</s>]"));
  EXPECT_EQ(tokenizer.join({"a", "<new>", "<other>"}), "a<new>");
}

TEST(OlderFiles, NamesWhatIsWrongInOlderFiles) {
  const auto with = [](const char* file, const json& content, const char* name) {
    return refused(name, [&](ForeignFolder& foreign) {
      make_older(foreign);
      foreign.files[file] = content;
    });
  };
  const char* roberta = "RobertaForMaskedLM";
  EXPECT_THAT(with("merges.txt", "#version: 0.2\nab\n", roberta),
              HasSubstr("merges.txt:2: 'ab' is not two tokens with a space between"));
  EXPECT_THAT(with("vocab.json", {{"<s>", 0}, {"a", 2}}, roberta),
              HasSubstr("vocab.json: has the id '2' for 'a'"));
  EXPECT_THAT(with("added_tokens.json", {{"<new>", 7}}, roberta), HasSubstr("with the id 7"));
  EXPECT_THAT(with("special_tokens_map.json", {{"mask_token", "<blank>"}}, roberta),
              HasSubstr("vocab.json: has no special token '<blank>'"));
  EXPECT_THAT(with("tokenizer_config.json",
                   {{"added_tokens_decoder", {{"x", {{"content", "<new>"}}}}}}, roberta),
              HasSubstr("added_tokens_decoder.x has a name that is not an id"));
  EXPECT_THAT(with("tokenizer_config.json", {{"add_bos_token", true}}, "GPT2LMHeadModel"),
              HasSubstr("add_bos_token is true, which is not supported"));
  EXPECT_THAT(refused(roberta,
                      [](ForeignFolder& foreign) {
                        make_older(foreign);
                        foreign.files.erase("merges.txt");
                      }),
              HasSubstr("merges.txt: is missing"));
}

TEST(OlderFiles, RefusesOlderVocabulariesThatAreNoText) {
  const auto with = [](const std::string& last) {
    return refused("BertModel", [&](ForeignFolder& foreign) {
      foreign.files.erase("tokenizer.json");
      foreign.files["vocab.txt"] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + last + "\n";
    });
  };
  EXPECT_THAT(with("\xFF"), HasSubstr("vocab.txt:6: "));
  EXPECT_THAT(with(""), HasSubstr("vocab.txt:6: "));
}

}  // namespace older_files_test
}  // namespace attend
