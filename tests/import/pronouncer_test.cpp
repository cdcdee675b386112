#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <sstream>

#include "attend/files/npz.h"
#include "attend/import/import_model.h"
#include "attend/inference/model.h"
#include "tests/import/foreign_folder.h"
#include "tests/support/files.h"

namespace attend {
namespace pronouncer_test {

using at::Tensor;
using testing::HasSubstr;

constexpr int64_t begin = 2, end = 3;
constexpr size_t fixed_tokens = 4;

NamedTensors small_pronouncer() {
  int64_t number = 0;
  const auto made = [&](const std::vector<int64_t>& shape) {
    return test::by_formula(++number, shape, false) * 3;
  };
  return {{"enc_emb", made({29, 4})},  {"enc_w_ih", made({18, 4})}, {"enc_w_hh", made({18, 6})},
          {"enc_b_ih", made({18})},    {"enc_b_hh", made({18})},    {"dec_emb", made({74, 4})},
          {"dec_w_ih", made({18, 4})}, {"dec_w_hh", made({18, 6})}, {"dec_b_ih", made({18})},
          {"dec_b_hh", made({18})},    {"fc_w", made({74, 6})},     {"fc_b", made({74})}};
}

// Up to `most` phoneme ids for letter ids, computed with LibTorch's cells.
std::vector<int64_t> pronounced(const NamedTensors& all, const std::vector<int64_t>& letters,
                                size_t maximum) {
  const auto step = [&](const std::string& side, int64_t id, const Tensor& state) {
    const auto part = [&](const char* name) { return all.at(side + name); };
    return at::gru_cell(part("_emb")[id].unsqueeze(0), state, part("_w_ih"), part("_w_hh"),
                        part("_b_ih"), part("_b_hh"));
  };
  Tensor state = at::zeros({1, 6});
  for (const int64_t letter : letters) state = step("enc", letter, state);
  std::vector<int64_t> found;
  for (int64_t id = begin; found.size() < maximum;) {
    state = step("dec", id, state);
    id = (at::linear(state, all.at("fc_w"), all.at("fc_b"))).argmax().item<int64_t>();
    if (id == end) break;
    found.push_back(id);
  }
  return found;
}

TEST(Pronouncer, AnswersAsItsCellsDo) {
  const test::TemporaryFolder folder;
  const NamedTensors all = small_pronouncer();
  write_npz(folder / "g2p.npz", all);
  const ImportedModel made = import_model(folder / "g2p.npz", folder / "ours");
  EXPECT_EQ(made.architecture, "g2p-en");
  EXPECT_EQ(made.type, "seq2seq");
  EXPECT_EQ(made.tokens, 29);
  std::vector<std::string> names;  // by the ids of our model
  std::istringstream lines(test::contents(folder / "ours/target.vocab"));
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  ASSERT_EQ(names.size(), fixed_tokens + 74);
  EXPECT_EQ(names.back(), "ZH");
  const Model model(folder / "ours");
  SearchOptions search;
  search.maximum_length = 20;
  // c a t, and a character that is not a letter; accents and case are removed.
  const std::vector<std::pair<std::string, std::vector<int64_t>>> words = {
      {"cat", {5, 3, 22, 2}}, {"C\xc3\xa1T", {5, 3, 22, 2}}, {"a-z", {3, 1, 28, 2}}};
  for (const auto& [word, letters] : words) {
    const std::vector<int64_t> expected = pronounced(all, letters, 20);
    ASSERT_FALSE(expected.empty());
    const Answer answer = model.answer({word}, search).at(0);
    ASSERT_EQ(answer.best().tokens.size(), expected.size()) << word;
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto id = static_cast<size_t>(expected[i]);
      EXPECT_EQ(answer.best().tokens[i], names.at(fixed_tokens + id)) << word << " at " << i;
    }
  }
}

TEST(Pronouncer, NamesAnArrayThatIsNotAsItShouldBe) {
  const auto refused = [](const std::function<void(NamedTensors&)>& change) {
    const test::TemporaryFolder folder;
    NamedTensors all = small_pronouncer();
    change(all);
    write_npz(folder / "g2p.npz", all);
    const std::string message =
        test::error_of([&] { import_model(folder / "g2p.npz", folder / "ours"); });
    EXPECT_FALSE(std::filesystem::exists(folder / "ours")) << message;
    return message;
  };
  EXPECT_THAT(refused([](auto& all) { all.erase("enc_emb"); }),
              HasSubstr("holds no matrix 'enc_emb', so it is not a model of g2p-en"));
  EXPECT_THAT(refused([](auto& all) { all.erase("fc_b"); }), HasSubstr("array 'fc_b' is missing"));
  EXPECT_THAT(refused([](auto& all) { all["more"] = at::zeros({1}); }),
              HasSubstr("holds 13 arrays"));
  EXPECT_THAT(refused([](auto& all) {
                all["dec_emb"] = at::zeros({70, 4});
              }),
              HasSubstr("array 'dec_emb' has the type Float and shape [70, 4]"));
  EXPECT_THAT(refused([](auto& all) { all["fc_b"] = at::zeros({74}, at::kLong); }),
              HasSubstr("array 'fc_b' has the type Long"));
}

}  // namespace pronouncer_test
}  // namespace attend
