#include "attend/explain/head_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/explain/layer_maps.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace head_patterns_test {

using at::Tensor;
using test::small_model;
using test::small_models;
using test::SmallModel;

// Expected: whether key j of row i belongs to the pattern. Shares are sums over rows that can see
// such a key.
bool is_key(const std::string& pattern, const std::vector<int64_t>& tokens, int64_t i, int64_t j) {
  const auto token = [&](int64_t place) { return tokens[static_cast<size_t>(place)]; };
  if (pattern == "previous_token") return j == i - 1;
  if (pattern == "first_token") return j == 0;
  if (pattern == "duplicate_token") return j != i && token(j) == token(i);
  return j > 0 && j - 1 != i && token(j - 1) == token(i);
}

TEST(HeadPatterns, SharesAreThoseOfTheDefinitions) {
  const std::vector<int64_t> tokens = {7, 5, 6, 5, 5, 7, 6};
  const auto n = std::ssize(tokens);
  at::manual_seed(3);
  const Tensor weights = at::rand({2, n, n}, at::kDouble);
  for (const bool causal : {true, false}) {
    const Tensor scope =
        causal ? at::ones({2, n, n}, at::kBool).tril() : at::ones({2, n, n}, at::kBool);
    const Tensor found = pattern_shares(weights, scope, at::tensor(tokens, at::kLong));
    for (int64_t head = 0; head < 2; ++head) {
      int64_t column = 0;
      for (const HeadPatternRow& row : head_pattern_table()) {
        double on = 0, all = 0;
        for (int64_t i = causal ? 1 : 0; i < n; ++i) {
          double row_on = 0, row_all = 0;
          bool has_key = false;
          for (int64_t j = 0; j < (causal ? i + 1 : n); ++j) {
            const double weight = weights[head][i][j].item<double>();
            row_all += weight;
            row_on += is_key(row.name, tokens, i, j) ? weight : 0;
            has_key = has_key || is_key(row.name, tokens, i, j);
          }
          all += has_key ? row_all : 0;
          on += row_on;
        }
        EXPECT_NEAR(found[head][column++].item<double>(), on / all, 1e-12) << row.name;
      }
    }
  }
}

// A head that follows exactly one pattern has its name.
TEST(HeadPatterns, NameHeadsByWhatTheyDo) {
  const Tensor tokens = at::tensor({4, 8, 6, 4, 8, 6}, at::kLong);
  const Tensor causal = at::ones({1, 6, 6}, at::kBool).tril();
  for (const HeadPatternRow& row : head_pattern_table()) {
    Tensor weights = row.keys(tokens).unsqueeze(0).logical_and(causal).to(at::kDouble);
    const Tensor shares = pattern_shares(weights, causal, tokens)[0].contiguous();
    HeadPatterns head{{}, 0, {shares.data_ptr<double>(), shares.data_ptr<double>() + 4}};
    ASSERT_NE(head.name(), nullptr);
    EXPECT_STREQ(head.name()->name, row.name);
    EXPECT_NEAR(*std::max_element(head.shares.begin(), head.shares.end()), 1, 1e-12);
    for (double& share : head.shares) share *= 0.4;
    EXPECT_EQ(head.name(), nullptr);
  }
  const Tensor alone = pattern_shares(at::ones({1, 1, 1}, at::kDouble),
                                      at::ones({1, 1, 1}, at::kBool), at::tensor({4}, at::kLong));
  EXPECT_EQ(alone.abs().max().item<double>(), 0) << "a single key says nothing";
}

// A causal head with rows of sum 1. Rows that can see keys of the pattern attend to them, other
// rows to the first token.
TEST(HeadPatterns, NameCausalHeadsBySuchRowsAlone) {
  for (const int64_t behind : {0, 7}) {  // tokens of an answer after the repeated tokens
    const int64_t n = 51 + behind;
    const Tensor drawn = at::arange(25) + 5;
    const Tensor tokens = at::cat({at::tensor({1L}), drawn, drawn, at::arange(behind) + 40});
    const Tensor causal = at::ones({1, n, n}, at::kBool).tril();
    for (const char* name : {"induction", "duplicate_token"}) {
      SCOPED_TRACE(name);
      const auto& table = head_pattern_table();
      const auto row = std::find_if(table.begin(), table.end(), [&](const HeadPatternRow& one) {
        return std::string(one.name) == name;
      });
      Tensor weights = row->keys(tokens).unsqueeze(0).logical_and(causal).to(at::kDouble);
      weights.select(2, 0) += (weights.sum(2) == 0);
      ASSERT_TRUE(weights.sum(2).equal(at::ones({1, n}, at::kDouble)));
      const Tensor shares = pattern_shares(weights, causal, tokens)[0].contiguous();
      const HeadPatterns head{{}, 0, {shares.data_ptr<double>(), shares.data_ptr<double>() + 4}};
      ASSERT_NE(head.name(), nullptr);
      EXPECT_STREQ(head.name()->name, name);
      EXPECT_NEAR(shares[row - table.begin()].item<double>(), 1, 1e-12);
    }
  }
}

TEST(HeadPatterns, OfEveryTypeAreSharesOrThereIsNoSelfAttention) {
  int64_t heads = 0;
  for (const SmallModel& small : small_models()) {
    SCOPED_TRACE(small.name);
    const Subject subject = small.subject();
    int64_t wanted = 0;
    for (const LayerMap& map : layer_maps(subject, trace_network(subject.network(), subject.batch)))
      wanted += map.row_sequence() == map.column_sequence() ? map.weights.size(0) : 0;
    const std::vector<HeadPatterns> found = head_patterns(subject);
    EXPECT_EQ(std::ssize(found), wanted);
    for (const HeadPatterns& one : found) {
      EXPECT_EQ(one.shares.size(), head_pattern_table().size());
      for (const double share : one.shares) {
        EXPECT_GE(share, 0);
        EXPECT_LE(share, 1 + 1e-9);
      }
    }
    heads += wanted;
  }
  EXPECT_GT(heads, 20);
}

TEST(HeadPatterns, AreReadOffRepeatedTokens) {
  const SmallModel small = small_model("transformer");
  const Subject repeated = with_repeated_tokens(small.subject());
  ASSERT_EQ(repeated.source.size(), 10U);  // five letters twice
  ASSERT_EQ(repeated.target.size(), 6U);
  for (const auto* tokens : {&repeated.source, &repeated.target}) {
    const size_t half = tokens->size() / 2;
    const std::set<std::string> different(tokens->begin(), tokens->end());
    EXPECT_EQ(different.size(), half);
    for (size_t i = 0; i < half; ++i) EXPECT_EQ((*tokens)[i], (*tokens)[i + half]);
  }
  EXPECT_EQ(with_repeated_tokens(small.subject()).source, repeated.source) << "the same each time";
  const SmallModel label = small_model("classifier_class");
  EXPECT_EQ(with_repeated_tokens(label.subject()).target, label.subject().target);
}

}  // namespace head_patterns_test
}  // namespace attend
