// Tests of rows of the weights and their summaries, from the lse of forward.
#include <string>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace summaries_test {

template <class S>
class Summaries : public ::testing::Test {};
using Types = ::testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(Summaries, Types);

template <class S>
struct Weights {
  using C = Compute<S>;

  explicit Weights(const Case<S>& given) : c(given), placed{c, Layout::interleaved} {}

  std::vector<C> all(const std::vector<C>& lse, const Selection& selection, int threads) const {
    const auto heads =
        static_cast<int64_t>(selection.heads.empty() ? c.shape.heads : selection.heads.size());
    std::vector<C> out(c.shape.batch * heads * selection.rows * c.shape.keys, C(7));
    attention_weights<S>(placed.problem(), lse.data(), selection,
                         contiguous(out.data(), heads, selection.rows, c.shape.keys), threads);
    return out;
  }

  const Case<S>& c;
  PlacedCase<S> placed;
};

template <class S, class Check>
void on_every_choice(const Check& check) {
  for (const FamilyChoice& family : kFamilies) {
    for (const NormaliserChoice& normaliser : kNormalisers) {
      SCOPED_TRACE(std::string(family.name) + " " + normaliser.name);
      auto c = random_case<S>({2, 4, 2, 75, 80, 9, 3}, family.family);
      c.score.activation = family.activation;
      set_normaliser(normaliser, c);
      add_bias(c, {"all", true, true, true, true, {false, true, true}, true});
      c.scope = causal(-3);
      check(c);
    }
  }
}

TYPED_TEST(Summaries, WeightsOfAllRows) {
  on_every_choice<TypeParam>([](Case<TypeParam>& c) {
    // weights are taken before dropout
    c.dropout = {0.5, 3};
    const Expected<TypeParam> expected(c);
    on_every_target([&] {
      const auto lse = run_forward(c).lse;
      expected.check_weights(Weights<TypeParam>(c).all(lse, {{}, 0, 75}, 1));
    });
  });
}

// Summaries follow from the weights: bit-identical, or up to the order of a sum.
TYPED_TEST(Summaries, OfChosenHeadsAndRows) {
  using C = Compute<TypeParam>;
  constexpr int64_t kFirst = 2, kRows = 70, kKeys = 80, kTop = 5;
  const int64_t heads[] = {3, 0, 3};
  on_every_choice<TypeParam>([&](const Case<TypeParam>& c) {
    const Weights<TypeParam> weights(c);
    const auto lse = run_forward(c).lse;
    const Selection selection{heads, kFirst, kRows};
    const auto all = weights.all(lse, {{}, 0, 75}, 1), chosen = weights.all(lse, selection, 2);
    const Problem<TypeParam> problem = weights.placed.problem();
    std::vector<C> top(6 * kRows * kTop), entropy(6 * kRows), sums(6 * kKeys);
    std::vector<int64_t> keys(top.size());
    attention_top(problem, lse.data(), selection, kTop, top.data(), keys.data());
    attention_entropy(problem, lse.data(), selection, entropy.data());
    attention_column_sums(problem, lse.data(), selection, sums.data());
    std::vector<double> columns(6 * kKeys), sizes(6 * kKeys);
    const double unit = unit_roundoff<C>();
    for (int64_t n = 0; n < 6; ++n) {
      for (int64_t r = 0; r < kRows; ++r) {
        const C* row = chosen.data() + (n * kRows + r) * kKeys;
        const C* from = all.data() + ((n / 3 * 4 + heads[n % 3]) * 75 + kFirst + r) * kKeys;
        double sum = 0, size = 0;
        std::vector<int64_t> order;
        for (int64_t j = 0; j < kKeys; ++j) {
          // blocks begin at other rows: scores differ by a few units of (|q| + |k|)^2, up to 100
          ASSERT_NEAR(row[j], from[j], 256 * unit * (1 + std::abs(from[j])));
          if (row[j] > 0) order.push_back(j);
          if (row[j] != 0) sum -= row[j] * std::log(double(row[j]));
          size += std::abs(row[j]) * (1 + std::abs(std::log(std::abs(double(row[j])) + 1e-300)));
          columns[n * kKeys + j] += row[j];
          sizes[n * kKeys + j] += std::abs(row[j]);
        }
        const auto larger = [&](int64_t a, int64_t b) { return row[a] > row[b]; };
        std::stable_sort(order.begin(), order.end(), larger);
        for (int64_t t = 0; t < kTop; ++t) {
          const int64_t index = (n * kRows + r) * kTop + t;
          const bool listed = t < static_cast<int64_t>(order.size());
          ASSERT_EQ(keys[index], listed ? order[t] : -1);
          ASSERT_EQ(top[index], listed ? row[order[t]] : C(0));
        }
        if (c.normaliser == Normaliser::none) continue;  // negative weights have no logarithm
        ASSERT_NEAR(entropy[n * kRows + r], sum, kKeys * unit * size);
      }
    }
    for (int64_t i = 0; i < 6 * kKeys; ++i)
      ASSERT_NEAR(sums[i], columns[i], (kRows + 16) * unit * (1 + sizes[i]));
  });
}

TYPED_TEST(Summaries, OfNothing) {
  const auto c = random_case<TypeParam>({2, 2, 1, 5, 6, 4, 3}, Family::dot);
  const PlacedCase<TypeParam> placed{c, {}};
  const auto lse = run_forward(c).lse;
  std::vector<Compute<TypeParam>> sums(2 * 2 * 6, 7);
  attention_column_sums(placed.problem(), lse.data(), {{}, 5, 0}, sums.data());
  for (const auto sum : sums) EXPECT_EQ(sum, 0);
  attention_weights<TypeParam>(placed.problem(), lse.data(), {{}, 0, 0}, {});
  attention_entropy<TypeParam>(placed.problem(), lse.data(), {{}, 5, 0}, nullptr);
  attention_top<TypeParam>(placed.problem(), lse.data(), {{}, 5, 0}, 3, nullptr, nullptr);
}

}  // namespace summaries_test
}  // namespace attend::kernels::testing
