#include "attend/inference/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "attend/files/safetensors.h"
#include "attend/inference/predictor.h"
#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/parameters_file.h"
#include "tests/models/networks.h"
#include "tests/support/files.h"

namespace attend {
namespace ranking_test {

using testing::ElementsAre;
using testing::HasSubstr;

// Counts fall from a to g.
const std::vector<Example> taken = {{"", {"a b c d e f g"}}, {"", {"a b c d e f"}},
                                    {"", {"a b c d"}},       {"", {"a b c"}},
                                    {"", {"a b"}},           {"", {"a"}}};

class Ranking : public testing::Test {
 protected:
  std::string make(const std::string& type) {
    const ModelConfig config = test::SomeNetwork{type, {"model.context=16"}}.config();
    torch::manual_seed(3);
    const PairModel model = make_pair_model(config.row().text, config, taken);
    const std::string path = folder / type;
    std::filesystem::create_directory(path);
    save_description(model, path);
    save_weights(*model.network, path + "/weights.safetensors");
    return path;
  }

  test::TemporaryFolder folder;
};

// Expected rank, from the probabilities of a search over all items.
std::optional<Rank> by_search(const Model& model, const Example& example, bool keep_seen) {
  const Answer answer =
      model.answer({example.source}, {.beam = 7, .nbest = 7, .keep_seen = keep_seen}).at(0);
  std::vector<std::string> order;
  for (const Candidate& candidate : answer.candidates) order.push_back(candidate.text);
  return rank_among(order, example.targets);
}

TEST_F(Ranking, IsThatOfASearchOverAllItems) {
  const Model model(make("recommender"), {.threads = 2});
  const std::vector<Example> examples = {
      {"a b", {"c"}}, {"c", {"a"}}, {"g f e", {"b"}}, {"d a d", {"d"}}, {"b", {"b"}}};
  for (const bool keep_seen : {false, true}) {
    const Evaluation found = rank_next(model, examples, {.keep_seen = keep_seen});
    for (size_t i = 0; i < examples.size(); ++i)
      EXPECT_EQ(found.answers[i].rank, by_search(model, examples[i], keep_seen)) << i << keep_seen;
  }
  EXPECT_EQ(rank_next(model, examples, {}).answers[3].rank, std::nullopt) << "was seen";
  EXPECT_EQ(evaluate(model, examples, {}).answers[0].rank,
            rank_next(model, examples, {}).answers[0].rank);
}

TEST_F(Ranking, OfPopularityFollowsTheCounts) {
  const Model model(make("recommender"));
  const std::vector<Example> examples = {{"b", {"c"}}, {"f", {"a"}}, {"a", {"a"}}, {"a", {"x"}}};
  const auto left = rank_popular(model, examples, {}).answers;
  EXPECT_EQ(left[0].rank, (Rank{1, 0}));
  EXPECT_EQ(left[1].rank, (Rank{0, 0}));
  EXPECT_EQ(left[2].rank, std::nullopt) << "was seen";
  EXPECT_EQ(left[3].rank, std::nullopt) << "was not in training";
  const auto kept = rank_popular(model, examples, {.keep_seen = true}).answers;
  EXPECT_EQ(kept[0].rank, (Rank{2, 0}));
  EXPECT_EQ(kept[2].rank, (Rank{0, 0}));
}

// Three of the five other items (e, f, g) are less frequent than d.
TEST_F(Ranking, AmongItemsThatAreDrawn) {
  const Model model(make("recommender"));
  const std::vector<Example> examples(200, Example{"b", {"d"}});
  double above = 0;
  for (const ScoredAnswer& answer : rank_popular(model, examples, {.negatives = 2}).answers) {
    ASSERT_TRUE(answer.rank);
    EXPECT_LE(answer.rank->above, 2);
    above += static_cast<double>(answer.rank->above);
  }
  // Two of 5 items are drawn without replacement, and 2 of the 5 rank above. The mean has a
  // deviation of 0.042.
  EXPECT_NEAR(above / 200, 0.8, 0.2);
  EXPECT_EQ(rank_popular(model, examples, {.negatives = 100}).answers[0].rank, (Rank{2, 0}));
  const auto ranks = [&](uint64_t seed) {
    std::vector<int64_t> all;
    for (const auto& answer : rank_next(model, examples, {.negatives = 2, .seed = seed}).answers)
      all.push_back(answer.rank->above);
    return all;
  };
  EXPECT_EQ(ranks(1), ranks(1));
  EXPECT_NE(ranks(1), ranks(2));
}

TEST_F(Ranking, LeavesItemsOutThatWereNotInTraining) {
  const Model model(make("recommender"));
  const std::vector<Example> with = {{"x a y b", {"c"}}, {"a", {"z"}}};
  EXPECT_EQ(rank_next(model, with, {}).answers[0].rank,
            rank_next(model, {{"a b", {"c"}}}, {}).answers[0].rank);
  EXPECT_EQ(rank_next(model, with, {}).answers[1].rank, std::nullopt);
  EXPECT_EQ(likelihood(model, with).tokens, 1);
  EXPECT_NEAR(likelihood(model, with).nats, -model.log_probabilities({{"a b", {"c"}}}).at(0), 1e-4);
  EXPECT_THAT(test::error_of([&] { model.answer({"a x"}); }),
              HasSubstr("item 'x' was not in training"));
}

TEST_F(Ranking, CountsWhatCannotBeRanked) {
  const Model model(make("recommender"));
  const std::vector<Example> examples = {
      {"a", {"b"}}, {"a b", {"a"}}, {"a", {"z"}}, {"b", {"b"}}, {"x", {"y"}}};
  const RankMisses misses = count_misses(model, examples, rank_next(model, examples, {}));
  EXPECT_EQ(misses.unknown, 2);
  EXPECT_EQ(misses.seen, 2);
  const Evaluation kept = rank_next(model, examples, {.keep_seen = true});
  EXPECT_EQ(count_misses(model, examples, kept).seen, 0);
}

TEST_F(Ranking, TellsHowFarItIsOnTheCallingThread) {
  const std::vector<Example> examples(200, {"a b", {"c"}});
  for (const int64_t threads : {1, 2}) {
    const Model model(make("recommender"), {.threads = threads});
    int64_t told = 0;
    rank_next(model, examples, {}, [&](int64_t done, int64_t total) {
      EXPECT_EQ(done, ++told);
      EXPECT_EQ(total, 200);
      EXPECT_EQ(model.answer({"a b"}).size(), 1U);
    });
    EXPECT_EQ(told, 200);
    const auto stop = [&](int64_t, int64_t) {
      --told;
      throw std::runtime_error("enough");
    };
    EXPECT_THROW(rank_next(model, examples, {}, stop), std::runtime_error);
    EXPECT_EQ(told, 199) << "the exception ended the call";
  }
}

TEST_F(Ranking, RefusesProbabilitiesThatAreNoNumbers) {
  const std::string path = make("recommender");
  TensorFile file = read_safetensors(path + "/weights.safetensors");
  for (auto& [name, tensor] : file.tensors) tensor.fill_(std::nanf(""));
  write_safetensors(path + "/weights.safetensors", file);
  const Model model(path);
  EXPECT_THAT(test::error_of([&] {
                rank_next(model, {{"a", {"b"}}}, {});
              }),
              HasSubstr("the model's probabilities are NaN"));
}

TEST_F(Ranking, RefusesOtherModels) {
  const Model model(make("lm"));
  EXPECT_THAT(test::error_of([&] {
                rank_next(model, {{"a", {"b"}}}, {});
              }),
              HasSubstr("type lm does not rank items"));
}

TEST_F(Ranking, AnswersAreTheItemsThatWereNotSeen) {
  const Model model(make("recommender"));
  const Answer answer = model.answer({"a b c d e f"}, {.beam = 7, .nbest = 7}).at(0);
  ASSERT_EQ(answer.candidates.size(), 1U);
  EXPECT_EQ(answer.candidates[0].text, "g");
  EXPECT_EQ(model.answer({""}, {.beam = 7, .nbest = 7}).at(0).candidates.size(), 7U);
}

}  // namespace ranking_test
}  // namespace attend
