#include "attend/nn/pass.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "attend/nn/attention_trace.h"

namespace attend {
namespace pass_test {

using at::Tensor;

constexpr Site encoder_two{NetworkPart::encoder, 2, false};

// Doubles its result and weights, and records sites.
class Doubling : public Watch {
 public:
  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    sites.push_back(rest.site);
    const AttentionResult result = Watch::attention(call, rest);
    return {result.context * 2, result.lse};
  }
  Tensor weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                 const AttentionSpec& spec, const Pass& rest) override {
    return Watch::weights(query, key, lse, spec, rest) * 2;
  }
  Tensor normalised(const NormCall& call, const Pass& rest) override {
    return Watch::normalised(call, rest) * 2;
  }
  Tensor activated(const Tensor& x, Tensor (*f)(const Tensor& x), const Pass& rest) override {
    return Watch::activated(x, f, rest) * 2;
  }
  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    sites.push_back(rest.site);
    return Watch::vectors(which, x, rest) * 2;
  }

  std::vector<Site> sites;
};

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

TEST(Pass, WithoutAWatchIsAttention) {
  const Tensor query = random({2, 3, 4}), key = random({2, 5, 4});
  const AttentionSpec spec{.scope = causal()};
  const AttentionResult expected = attention(query, key, key, spec);
  const AttentionResult found = Pass{}.attention(query, key, key, spec);
  EXPECT_TRUE(at::equal(found.context, expected.context));
  EXPECT_TRUE(at::equal(Pass{}.weights(query, key, found.lse, spec),
                        attention_weights(query, key, expected.lse, spec)));
  EXPECT_TRUE(Pass{}.watched(WatchedVectors::layer, query).is_same(query));
}

// Each watch receives the results of the watch that was added before it.
TEST(Pass, WatchesStandOneBehindTheOther) {
  const Tensor query = random({2, 3, 4}), key = random({2, 5, 4});
  const AttentionResult expected = attention(query, key, key);
  Doubling first, second;
  AttentionTrace trace;
  const Pass pass =
      Pass{}.watched_by(first).watched_by(trace).watched_by(second).at_site(encoder_two);
  const AttentionResult found = pass.attention(query, key, key, {});
  EXPECT_TRUE(at::equal(found.context, expected.context * 4));
  EXPECT_TRUE(at::equal(pass.weights(query, key, found.lse, {}),
                        attention_weights(query, key, expected.lse) * 4));
  EXPECT_TRUE(at::equal(pass.watched(WatchedVectors::input, query), query * 4));
  EXPECT_EQ(first.sites, (std::vector<Site>{encoder_two, encoder_two}));
  EXPECT_EQ(second.sites, first.sites);
  ASSERT_EQ(trace.attentions().size(), 1);
  EXPECT_TRUE(at::equal(trace.attentions()[0].calls[0].result.context, expected.context * 2));
  EXPECT_TRUE(
      at::equal(trace.mean_weights(encoder_two), attention_weights(query, key, expected.lse)));
}

TEST(Pass, NormsAndActivationsAreWatched) {
  const Tensor x = random({2, 3, 4}), gain = random({4}), shift = random({4});
  const Tensor even =
      (x - x.mean(-1, true)) / (x.var(-1, false, true) + 1e-3).sqrt() * gain + shift;
  const auto square = [](const Tensor& numbers) { return numbers * numbers; };
  Doubling first, second;
  const Pass pass = Pass{}.watched_by(first).watched_by(second);
  EXPECT_TRUE(at::allclose(Pass{}.normalised({x, gain, shift, 1e-3}), even));
  EXPECT_TRUE(at::allclose(pass.normalised({x, gain, shift, 1e-3}), even * 4));
  EXPECT_TRUE(at::equal(Pass{}.activated(x, square), x * x));
  EXPECT_TRUE(at::equal(pass.activated(x, square), x * x * 4));
}

TEST(Pass, StepsOfADecoderAreRowsOfOneAttention) {
  const Tensor query = random({2, 3, 4}), key = random({2, 5, 4});
  AttentionTrace trace;
  const Pass pass = Pass{}.watched_by(trace).at_site({NetworkPart::decoder, 0, true});
  for (int64_t t = 0; t < 3; ++t) pass.attention(query.narrow(1, t, 1), key, key, {});
  ASSERT_EQ(trace.attentions().size(), 1);
  const TracedAttention& found = trace.attentions()[0];
  EXPECT_EQ(found.name(), "decoder over the source");
  EXPECT_TRUE(found.in_steps());
  EXPECT_EQ(found.rows(), 3);
  EXPECT_TRUE(at::allclose(found.weights().squeeze(1),
                           attention_weights(query, key, attention(query, key, key).lse)));
}

TEST(Pass, DrawsByItsGenerator) {
  const auto pass_of = [](uint64_t seed) {
    return Pass{.generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
  };
  EXPECT_EQ(Pass{}.draw_seed(), 0U);
  const Pass one = pass_of(1);
  const uint64_t first = one.draw_seed();
  EXPECT_NE(first, 0U);
  EXPECT_EQ(pass_of(1).draw_seed(), first);
  EXPECT_NE(one.at_site(encoder_two).draw_seed(), first) << "both draw from one generator";
}

}  // namespace pass_test
}  // namespace attend
