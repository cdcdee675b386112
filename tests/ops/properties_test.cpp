// Properties of every attention, for random numbers.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/ops/reference.h"

namespace attend::reference {
namespace properties_test {

using at::Tensor;

// Allows only rounding: scores of a few dozen terms of a few units.
constexpr double tolerance = 1e-11;

Sizes any_sizes() {
  Sizes sizes;
  sizes.batch = *rc::gen::inRange<int64_t>(1, 4);
  sizes.key_heads = *rc::gen::inRange<int64_t>(1, 3);
  sizes.heads = sizes.key_heads * *rc::gen::inRange<int64_t>(1, 3);
  sizes.queries = *rc::gen::inRange<int64_t>(1, 8);
  sizes.keys = *rc::gen::inRange<int64_t>(1, 8);
  sizes.query_depth = *rc::gen::inRange<int64_t>(1, 5);
  sizes.key_depth = *rc::gen::inRange<int64_t>(1, 5);
  sizes.attention_depth = *rc::gen::inRange<int64_t>(1, 5);
  sizes.value_depth = *rc::gen::inRange<int64_t>(1, 4);
  return sizes;
}

const ScoreRow& any_row() {
  return score_table()[*rc::gen::inRange<size_t>(0, score_table().size())];
}

uint64_t any_seed() { return *rc::gen::inRange<uint64_t>(1, 1U << 30); }

Problem any_problem(const ScoreRow& row, const Sizes& sizes) {
  return make_problem(row, sizes, *rc::gen::arbitrary<bool>() ? Given::all : Given::required,
                      *rc::gen::arbitrary<bool>(), at::kDouble, any_seed());
}

Tensor any_mask(const Sizes& sizes) {
  auto generator = at::detail::createCPUGenerator(any_seed());
  return at::rand({sizes.batch, sizes.heads, sizes.queries, sizes.keys}, generator, at::kDouble) <
         0.6;
}

Tensor any_lengths(const Sizes& sizes) {
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < sizes.batch; ++b)
    lengths.push_back(*rc::gen::inRange<int64_t>(0, sizes.keys + 1));
  return at::tensor(lengths, at::kLong);
}

bool same(const Tensor& a, const Tensor& b) { return at::allclose(a, b, tolerance, tolerance); }

bool same(const AttentionResult& a, const AttentionResult& b) {
  return same(a.context, b.context) && same(a.lse, b.lse);
}

AttentionResult attend_to(const Problem& p, const Scope& scope) {
  return attention(p.query, p.key, p.value, {.score = p.score, .scope = scope});
}

TEST(Properties, OrderOfKeysDoesNotMatter) {
  EXPECT_TRUE(rc::check([] {
    const Sizes sizes = any_sizes();
    const ScoreRow& row = any_row();
    // These scores depend on positions.
    RC_PRE(row.family.has_value() && row.name != "location_sensitive");
    const Problem p = any_problem(row, sizes);
    const Tensor mask = any_mask(sizes);
    auto generator = at::detail::createCPUGenerator(any_seed());
    const Tensor order = at::randperm(sizes.keys, generator, at::kLong);
    const Problem permuted = {p.query, p.key.index_select(2, order), p.value.index_select(2, order),
                              p.score};
    RC_ASSERT(same(attend_to(p, dense_mask(mask)),
                   attend_to(permuted, dense_mask(mask.index_select(3, order)))));
  }));
}

TEST(Properties, ShiftedScoresWeighTheSame) {
  EXPECT_TRUE(rc::check([] {
    const Sizes sizes = any_sizes();
    const Problem p = any_problem(score_row("dot"), sizes);
    // An additional dimension in which all keys are 1 adds the same to all scores of a query.
    const double shift = *rc::gen::inRange<int>(-500, 500);
    const Problem shifted = {at::constant_pad_nd(p.query, {0, 1}, shift),
                             at::constant_pad_nd(p.key, {0, 1}, 1.0), p.value, p.score};
    const Tensor mask = any_mask(sizes);
    const auto before = attend_to(p, dense_mask(mask)),
               after = attend_to(shifted, dense_mask(mask));
    RC_ASSERT(same(before.context, after.context));
    RC_ASSERT(same(before.lse + shift, after.lse));
  }));
}

TEST(Properties, PaddingBehindTheLengthsDoesNotMatter) {
  EXPECT_TRUE(rc::check([] {
    Sizes sizes = any_sizes();
    const ScoreRow& row = any_row();
    const Problem p = any_problem(row, sizes);
    const Tensor lengths = any_lengths(sizes);
    Tensor key = p.key.clone(), value = p.value.clone();
    for (int64_t b = 0; b < sizes.batch; ++b) {
      const int64_t length = lengths[b].item<int64_t>();
      key[b].narrow(1, length, sizes.keys - length).fill_(1e6);
      value[b].narrow(1, length, sizes.keys - length).fill_(-1e6);
    }
    const Problem padded = {p.query, key, value, p.score};
    RC_ASSERT(same(attend_to(p, key_lengths(lengths)), attend_to(padded, key_lengths(lengths))));
    const int64_t more = *rc::gen::inRange<int64_t>(1, 3);
    // The location score has two extra positions.
    const Problem longer = {p.query, at::constant_pad_nd(key, {0, 0, 0, more}, 1e6),
                            at::constant_pad_nd(value, {0, 0, 0, more}, 1e6), p.score};
    RC_ASSERT(same(attend_to(p, key_lengths(lengths)), attend_to(longer, key_lengths(lengths))));
  }));
}

TEST(Properties, IntersectedScopesAreTheirMasksAnd) {
  EXPECT_TRUE(rc::check([] {
    const Sizes sizes = any_sizes();
    const auto any_scope = [&]() -> Scope {
      switch (*rc::gen::inRange(0, 5)) {
        case 0:
          return all_keys();
        case 1:
          return causal();
        case 2:
          return window(*rc::gen::inRange<int64_t>(0, 9), *rc::gen::inRange<int64_t>(0, 9));
        case 3:
          return key_lengths(any_lengths(sizes));
        default:
          return dense_mask(any_mask(sizes));
      }
    };
    const auto mask_of = [&](const Scope& scope) {
      const Tensor mask =
          scope_mask(scope, sizes.batch, sizes.heads, sizes.queries, sizes.keys, at::kCPU);
      const Tensor dense = mask.defined() ? mask : at::ones({}, at::kBool);
      return dense.expand({sizes.batch, sizes.heads, sizes.queries, sizes.keys});
    };
    const Scope a = any_scope(), b = any_scope(), c = any_scope();
    const Tensor conjunction = mask_of(a).logical_and(mask_of(b)).logical_and(mask_of(c));
    RC_ASSERT(at::equal(mask_of(a & b & c), conjunction));
    RC_ASSERT(at::equal(mask_of(c & (b & a)), conjunction));
    const Problem p = any_problem(any_row(), sizes);
    RC_ASSERT(same(attend_to(p, a & b & c), attend_to(p, dense_mask(conjunction))));
  }));
}

TEST(Properties, WeightsSumToOneOrNothing) {
  EXPECT_TRUE(rc::check([] {
    const Sizes sizes = any_sizes();
    const Problem p = any_problem(any_row(), sizes);
    const Tensor mask = any_mask(sizes);
    const AttentionSpec spec = {.score = p.score, .scope = dense_mask(mask)};
    const auto result = attention(p.query, p.key, p.value, spec);
    const Tensor weights = attention_weights(p.query, p.key, result.lse, spec);
    RC_ASSERT(same(weights.sum(-1), mask.any(-1).to(at::kDouble)));
    const auto groups = sizes.heads / sizes.key_heads;
    RC_ASSERT(same(at::matmul(weights, p.value.repeat_interleave(groups, 1)), result.context));
  }));
}

}  // namespace properties_test
}  // namespace attend::reference
