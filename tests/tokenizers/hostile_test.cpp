#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/tokenizers/tokenizer.h"
#include "attend/tokenizers/vocabulary_files.h"
#include "tests/support/files.h"
#include "tests/tokenizers/model_writer.h"

namespace attend {
namespace hostile_test {

using test::error_of;
using test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(const std::string& json) {
  return error_of([&] { Tokenizer::parse(json, "input"); });
}

std::string refusal_of_model(const std::string& model) {
  return refusal(R"({"model": {)" + model + "}}");
}

TEST(HostileTokenizer, IsNoJson) {
  EXPECT_THAT(refusal(""), AllOf(StartsWith("input: is not JSON"), HasSubstr("fetch")));
  EXPECT_THAT(refusal("{\"model\": "), HasSubstr("is not JSON at byte"));
  EXPECT_THAT(refusal(std::string("{}\0", 3)), HasSubstr("a NUL at byte 3"));
  EXPECT_THAT(refusal("[1e999]"), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("over 64 deep"));
}

TEST(HostileTokenizer, HasPartsOfTheWrongShape) {
  EXPECT_EQ(refusal("[]"), "input: is not an object");
  EXPECT_EQ(refusal("{}"), "input: has no model");
  EXPECT_EQ(refusal(R"({"model": 1})"), "input: model is not an object");
  EXPECT_THAT(refusal_of_model(R"("type": "Word\nLevel")"),
              AllOf(StartsWith("input: model.type is 'Word\\x0aLevel', which is not read"),
                    HasSubstr("WordPiece, BPE, Unigram")));
  EXPECT_THAT(refusal_of_model(R"("type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1)"),
              HasSubstr("model.dropout is not read"));
}

TEST(HostileTokenizer, HasAVocabularyWithHolesOrDoubles) {
  const auto words = [](const std::string& vocabulary) {
    return refusal_of_model(R"("type": "BPE", "merges": [], "vocab": )" + vocabulary);
  };
  EXPECT_THAT(words(R"({"a": 0, "b": 2})"), HasSubstr("has the id '2' for 'b'; ids of 2 tokens"));
  EXPECT_THAT(words(R"({"a": 0, "b": 0})"), HasSubstr("has the id 0 twice, for 'a' and 'b'"));
  EXPECT_THAT(words(R"({"a": 0, "a": 1})"), HasSubstr("ids of 1 tokens"));
  EXPECT_THAT(words(R"({"a": -1})"), HasSubstr("has the id '-1'"));
  EXPECT_THAT(words(R"({"a": "0"})"), HasSubstr("has the id"));
  EXPECT_THAT(words("{}"), HasSubstr("has no tokens"));
  EXPECT_THAT(words(R"({"": 0})"), HasSubstr("token 0 of the vocabulary is empty"));
  EXPECT_THAT(refusal_of_model(R"("type": "Unigram", "unk_id": 0, "vocab": [["a", 0], ["a", 1]])"),
              HasSubstr("'a' is token 0 and token 1"));
  EXPECT_THAT(refusal_of_model(R"("type": "Unigram", "unk_id": 1, "vocab": [["a", 0]])"),
              HasSubstr("has the unk_id 1, but only 1 tokens"));
  EXPECT_THAT(refusal_of_model(R"("type": "Unigram", "unk_id": 0, "vocab": [["a"]])"),
              HasSubstr("has at 0 no token with its score"));
}

TEST(HostileTokenizer, HasMergesOfNoTokens) {
  const auto merges = [](const std::string& merge) {
    return refusal_of_model(R"("type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [)" + merge +
                            "]");
  };
  EXPECT_THAT(merges(R"("ab")"), HasSubstr("at 0 a merge that is wrong: 'ab' is not two tokens"));
  EXPECT_THAT(merges(R"("a b c")"), HasSubstr("is not two tokens"));
  EXPECT_THAT(merges(R"("a b")"), HasSubstr("the vocabulary has no 'ab'"));
  EXPECT_THAT(merges(R"(["a"])"), HasSubstr("is neither a text nor two"));
}

TEST(HostileTokenizer, HasAddedTokensThatDoNotFollow) {
  const auto added = [](const std::string& tokens) {
    return refusal(
        R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [)" +
        tokens + "]}");
  };
  EXPECT_THAT(added(R"({"id": 5, "content": "x"})"),
              HasSubstr("by the tokens before it the id is 1"));
  EXPECT_THAT(added(R"({"id": 1, "content": "a"})"), HasSubstr("the id is 0"));
  EXPECT_THAT(added(R"({"id": 1, "content": "x"}, {"id": 2, "content": "x"})"),
              HasSubstr("has 'x' twice"));
  EXPECT_THAT(added(R"({"id": 99999999999, "content": "x"})"),
              HasSubstr("added_tokens[0].id is not"));
  EXPECT_THAT(added(R"({"id": 1, "content": ""})"), HasSubstr("has an empty content"));
}

TEST(HostileTokenizer, HasTemplatesThatLackATextOrAToken) {
  const auto processed = [](const std::string& single) {
    return refusal(
        R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "post_processor":)"
        R"({"type": "TemplateProcessing", "special_tokens": {"x": {"ids": [7]}}, "single": [)" +
        single + R"(], "pair": [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "B"}}]}})");
  };
  EXPECT_THAT(processed(""), HasSubstr("post_processor.single must have A once and no B"));
  EXPECT_THAT(processed(R"({"Sequence": {"id": "C"}})"), HasSubstr("is the sequence 'C'"));
  const std::string text = R"({"Sequence": {"id": "A"}}, )";
  EXPECT_THAT(processed(text + R"({"SpecialToken": {"id": "y"}})"),
              HasSubstr("special_tokens lacks"));
  EXPECT_THAT(processed(text + R"({"SpecialToken": {"id": "x"}})"), HasSubstr("has the id 7"));
}

Tokenizer tokenizer_of(const Json& json) { return Tokenizer::parse(json.dump(), "made"); }

TEST(VocabularyFiles, MakeBertsTokenizer) {
  const std::string words = "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\n[MASK]\nrun\n##s\n";
  const Tokenizer tokenizer = tokenizer_of(tokenizer_json(words, WordPieceFiles{}));
  EXPECT_THAT(tokenizer.encode("RUNS [MASK]").ids, ElementsAre(2, 5, 6, 4, 3));
  EXPECT_THAT(tokenizer.encode("run", "runs").types, ElementsAre(0, 0, 0, 1, 1, 1));
  const Tokenizer cased =
      tokenizer_of(tokenizer_json(words, WordPieceFiles{.vocabulary = {}, .lowercase = false}));
  EXPECT_THAT(cased.encode("Run run").ids, ElementsAre(2, 1, 5, 3));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{2, 5, 6, 3}), "runs");
}

TEST(VocabularyFiles, MakeGpt2sAndRobertasTokenizers) {
  const std::string ids = R"({"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4,)"
                          R"("Ġ": 5, "Ġab": 6, "<mask>": 7})";
  const std::string merges = "#version: 0.2\na b\n\u0120 ab\n";
  ByteLevelFiles files{.tokens = {.special = {.unknown = "</s>"}}};
  EXPECT_THAT(tokenizer_of(tokenizer_json(ids, merges, files)).encode("ab ab").ids,
              ElementsAre(4, 6));
  files.prefix_space = true;
  files.tokens.special = {.begin = "<s>", .end = "</s>", .mask = "<mask>"};
  files.tokens.added = {{{"content", "new"}, {"id", 8}}};
  const Tokenizer tokenizer = tokenizer_of(tokenizer_json(ids, merges, files));
  EXPECT_THAT(tokenizer.encode("ab <mask>").ids, ElementsAre(0, 6, 7, 1));
  EXPECT_THAT(tokenizer.encode("anew").ids, ElementsAre(0, 5, 2, 8, 1));
  EXPECT_THAT(tokenizer.encode("a", "b").ids, ElementsAre(0, 5, 2, 1, 1, 5, 3, 1));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0, 6, 5, 2, 1}), " ab a");
}

PieceFiles xlm_roberta() {
  return {.model = "input",
          .first = {"<s>", "<pad>", "</s>", "<unk>"},
          .replaced = 3,
          .tokens = {.special = {"<unk>", "<s>", "</s>", "<pad>", "<mask>"}}};
}

TEST(VocabularyFiles, MakeXlmRobertasTokenizer) {
  const std::string model = test::ModelWriter()
                                .piece("<unk>", 0, 2)
                                .piece("<s>", 0, 3)
                                .piece("</s>", 0, 3)
                                .piece("\u2581", -3)
                                .piece("\u2581a", -1)
                                .piece("b", -2)
                                .text();
  const Tokenizer tokenizer = tokenizer_of(tokenizer_json(model, xlm_roberta()));
  EXPECT_THAT(tokenizer.encode("ab <mask> x").ids, ElementsAre(0, 5, 6, 7, 4, 3, 2));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0, 5, 6, 2}), "ab");
}

TEST(VocabularyFiles, NameTheLineThatIsWrong) {
  const auto of_words = [](const std::string& text) {
    return error_of([&] { tokenizer_json(text, WordPieceFiles{.vocabulary = "vocab.txt"}); });
  };
  EXPECT_THAT(of_words("[UNK]\na\n"), HasSubstr("vocab.txt: has no special token '[CLS]'"));
  EXPECT_THAT(of_words("a\nb\na\n"), HasSubstr("vocab.txt:3: 'a' is there twice"));
  EXPECT_THAT(of_words("a\n\nb\n"), HasSubstr("vocab.txt:2: the line is empty"));
  EXPECT_THAT(of_words("a\n\xFF\n"), HasSubstr("vocab.txt:2: '\\xff' is not UTF-8"));
  EXPECT_THAT(of_words(std::string(5000, 'a')), HasSubstr("over 4096 bytes"));
  const ByteLevelFiles files{.vocabulary = "vocab.json", .merges = "merges.txt"};
  const auto of_pairs = [&](const std::string& ids, const std::string& merges) {
    return error_of([&] { tokenizer_json(ids, merges, files); });
  };
  const std::string ids = R"({"<|endoftext|>": 0, "a": 1})";
  EXPECT_THAT(of_pairs(ids, "#version: 0.2\naa\n"),
              HasSubstr("merges.txt:2: 'aa' is not two tokens with a space between"));
  EXPECT_THAT(of_pairs(ids, "a b\n"), HasSubstr("merges.txt:1: the vocabulary has no 'b'"));
  EXPECT_THAT(of_pairs(R"({"a": 0, "b": 2})", ""), HasSubstr("vocab.json: has the id"));
  EXPECT_THAT(of_pairs(R"({"a": 0, "b": 0})", ""), HasSubstr("has the id 0 twice"));
  EXPECT_THAT(of_pairs(R"({"a": 0})", ""), HasSubstr("has no special token '<|endoftext|>'"));
}

TEST(VocabularyFiles, NameWhatNoPiecesAre) {
  const auto with = [](const std::string& model, const PieceFiles& files) {
    return error_of([&] { tokenizer_json(model, files); });
  };
  const test::ModelWriter few = test::ModelWriter().piece("<unk>", 0, 2);
  EXPECT_THAT(with(few.text(), xlm_roberta()), HasSubstr("input: has 1 pieces, and 3"));
  EXPECT_THAT(with("x", xlm_roberta()), HasSubstr("input: "));
  PieceFiles other = xlm_roberta();
  other.first[3] = "unknown";
  other.replaced = 1;
  EXPECT_THAT(with(few.text(), other), HasSubstr("has no special token '<unk>'"));
}

}  // namespace hostile_test
}  // namespace attend
