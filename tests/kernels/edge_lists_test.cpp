// Tests of attention along edges beyond the tables of choices: weights by edge and their summaries,
// threads, edges sorted by key, and rows with very many edges.
#include <string>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace edge_lists_test {

const Shape kShape{2, 4, 2, 75, 80, 9, 19};

template <class S, class Check>
void on_every_normaliser(const Check& check) {
  for (const bool of_heads : {false, true}) {
    for (const NormaliserChoice& normaliser : kNormalisers) {
      SCOPED_TRACE(std::string(normaliser.name) + (of_heads ? ", lists of heads" : ", one list"));
      auto c = random_case<S>(kShape, Family::additive);
      c.score.activation = Activation::leaky_relu;
      ScopeArrays arrays;
      c.scope = edges(kShape, arrays, of_heads);
      set_normaliser(normaliser, c);
      add_bias(c, {"all", true, true, true, true, {false, true, true}, true, true});
      check(c, edge_scope(c.scope)->lists);
    }
  }
}

template <class T>
class EdgeSummaries : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EdgeSummaries, Types);

// Bit-identical to the summaries of the rows of weights, except for the order of sums.
TYPED_TEST(EdgeSummaries, AreThoseOfTheRows) {
  using T = TypeParam;
  constexpr int64_t kFirst = 3, kRows = 70, kKeys = 80, kTop = 4;
  const int64_t heads[] = {3, 0, 3};
  on_every_normaliser<T>([&](const Case<T>& c, const EdgeLists& lists) {
    const PlacedCase<T> placed{c, Layout::padded};
    const Problem<T> problem = placed.problem();
    const auto lse = run_forward(c).lse;
    const Selection selection{heads, kFirst, kRows};
    const int64_t longest = lists.longest(kShape);
    std::vector<T> by_edge(6 * longest, T(7)), rows(6 * kRows * kKeys, T(7));
    std::vector<T> top(6 * kRows * kTop), entropy(6 * kRows), sums(6 * kKeys), want(6 * kKeys);
    std::vector<int64_t> keys(top.size());
    attention_edge_weights(problem, lse.data(), selection, by_edge.data());
    attention_weights(problem, lse.data(), selection, contiguous(rows.data(), 3, kRows, kKeys));
    attention_top(problem, lse.data(), selection, kTop, top.data(), keys.data());
    attention_entropy(problem, lse.data(), selection, entropy.data());
    attention_column_sums(problem, lse.data(), selection, sums.data());
    for (int64_t n = 0; n < 6; ++n) {
      std::vector<T> unseen(by_edge.begin() + n * longest, by_edge.begin() + (n + 1) * longest);
      for (int64_t r = 0; r < kRows; ++r) {
        const int64_t* ends = lists.row({n / 3, heads[n % 3], kFirst + r});
        T* row = rows.data() + (n * kRows + r) * kKeys;
        T maximum = 0, sum = 0;
        for (int64_t e = ends[0]; e < ends[1]; ++e) {
          T& weight = row[lists.keys[e]];
          const int64_t number = e - ends[-(kFirst + r)];
          ASSERT_EQ(by_edge[n * longest + number], weight);
          unseen[number] = 0;
          want[n * kKeys + lists.keys[e]] += weight;
          maximum = std::max(maximum, weight);
          if (weight != 0) sum -= weight * std::log(weight);
          weight = 0;
        }
        for (int64_t j = 0; j < kKeys; ++j) ASSERT_EQ(row[j], 0) << "a key without an edge";
        ASSERT_EQ(top[(n * kRows + r) * kTop], maximum);
        if (c.normaliser == Normaliser::none) continue;  // negative weights have no logarithm
        ASSERT_EQ(entropy[n * kRows + r], sum);
      }
      for (const T x : unseen) ASSERT_EQ(x, 0) << "an edge of no selected row";
    }
    EXPECT_EQ(sums, want);
  });
}

TEST(EdgeLists, ThreadsAndEdgesByKeyChangeNothing) {
  on_every_normaliser<float>([](Case<float>& c, const EdgeLists& lists) {
    c.score.soft_cap = 2;
    c.dropout = {0.3, 5};
    const auto a = run_forward(c, {1}), b = run_forward(c, {3});
    EXPECT_EQ(a.context, b.context);
    EXPECT_EQ(a.lse, b.lse);
    const auto g = run_backward(c, a, {1});
    const EdgesByKey sorted = sorted_by_key(lists, kShape);
    EdgeLists with = lists;
    with.by_key = &sorted;
    c.scope = {{{with}}};
    const auto h = run_backward(c, a, {3});
    for (const auto member :
         {&GradientOutput<float>::query, &GradientOutput<float>::key, &GradientOutput<float>::value,
          &GradientOutput<float>::vector, &GradientOutput<float>::dense,
          &GradientOutput<float>::slopes, &GradientOutput<float>::sinks,
          &GradientOutput<float>::relative, &GradientOutput<float>::centres,
          &GradientOutput<float>::widths, &GradientOutput<float>::edges})
      EXPECT_EQ(g.*member, h.*member);
  });
}

TEST(EdgeLists, SortedByKeyAreTheSameEdges) {
  ScopeArrays arrays;
  const EdgeLists lists = edge_scope(edges(kShape, arrays, true))->lists;
  const EdgesByKey sorted = sorted_by_key(lists, kShape);
  EXPECT_EQ(sorted.heads, kShape.heads);
  ASSERT_EQ(sorted.edges.size(), arrays.edge_keys.size());
  for (int64_t list = 0; list < kShape.batch * kShape.heads; ++list) {
    for (int64_t j = 0; j < kShape.keys; ++j) {
      const int64_t* ends = sorted.offsets.data() + list * (kShape.keys + 1) + j;
      for (int64_t n = ends[0]; n < ends[1]; ++n) {
        const int64_t* row =
            lists.row({list / kShape.heads, list % kShape.heads, sorted.queries[n]});
        EXPECT_EQ(lists.keys[sorted.edges[n]], j);
        EXPECT_TRUE(row[0] <= sorted.edges[n] && sorted.edges[n] < row[1]);
        EXPECT_TRUE(n == ends[0] || sorted.queries[n - 1] < sorted.queries[n]);
      }
    }
  }
}

// A query with 100,000 keys next to one without keys and one with a single key; equal keys share
// the weight.
TEST(EdgeLists, OneRowOfVeryManyEdges) {
  constexpr int64_t kKeys = 100000;
  auto c = random_case<float>({1, 1, 1, 3, kKeys, 3, 1}, Family::dot);
  std::vector<int64_t> offsets = {0, 0, kKeys, kKeys + 1}, keys(kKeys + 1);
  for (int64_t j = 0; j < kKeys; ++j) keys[j] = j;
  keys[kKeys] = 17;
  for (int64_t j = 0; j < kKeys * 3; ++j) c.key[j] = c.key[j % 3];
  c.grad_lse.clear();
  c.grad_context = {1, 1, 1};
  c.scope = {{{EdgeLists{offsets.data(), keys.data(), kKeys + 1}}}};
  const auto forward = run_forward(c);
  double mean = 0;
  for (const float v : c.value) mean += v / double(kKeys);
  EXPECT_EQ(forward.context[0], 0);
  EXPECT_NEAR(forward.context[1], mean, 1e-5);
  EXPECT_EQ(forward.context[2], c.value[17]);
  const auto gradients = run_backward(c, forward);
  for (int64_t j = 0; j < kKeys; ++j)
    EXPECT_NEAR(gradients.value[j], 1 / double(kKeys) + (j == 17), 1e-6) << j;
}

}  // namespace edge_lists_test
}  // namespace attend::kernels::testing
