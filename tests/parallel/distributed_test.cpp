// Tests of attention over sequences shared by several ranks, against attention() of the whole.
#include "attend/parallel/distributed_attention.h"
#include "tests/ops/bias_cases.h"
#include "tests/ops/misuse.h"
#include "tests/parallel/shared_problem.h"

namespace attend {
namespace distributed_test {

using reference::BiasCase;
using reference::Given;
using reference::ScopeCase;
using reference::Sizes;

// Relative difference that another order of summation in float32 may cause.
constexpr double bar = 1e-6;
constexpr Exchange exchanges[] = {Exchange::gather, Exchange::ring};

SharedProblem problem_of(const ScoreRow& row, const Sizes& sizes, at::ScalarType dtype,
                         bool parameter_heads = false) {
  const reference::Problem made =
      reference::make_problem(row, sizes, Given::all, parameter_heads, dtype, 5);
  SharedProblem problem = {made.query, made.key, made.value, {}, {}};
  std::vector<std::string> names;
  for (const auto& [name, tensor] : made.score.parameters()) {
    names.push_back(name);
    problem.tensors.push_back(tensor);
  }
  problem.make = [&row, names](const Tensors& tensors) {
    Parameters parameters;
    for (size_t i = 0; i < names.size(); ++i) parameters.emplace(names[i], tensors[i]);
    return AttentionSpec{.score = Score(row.name, std::move(parameters))};
  };
  return problem;
}

// The problem with a changed spec; its tensors follow the existing ones.
SharedProblem with(const SharedProblem& problem, const Tensors& added,
                   std::function<void(AttentionSpec&, const Tensors&)> choose) {
  SharedProblem changed = problem;
  for (const Tensor& x : added) changed.tensors.push_back(x.to(problem.query.scalar_type()));
  changed.make = [make = problem.make, before = problem.tensors.size(),
                  choose = std::move(choose)](const Tensors& tensors) {
    const auto middle = tensors.begin() + static_cast<int64_t>(before);
    AttentionSpec spec = make({tensors.begin(), middle});
    choose(spec, {middle, tensors.end()});
    return spec;
  };
  return changed;
}

constexpr Sizes self = {.batch = 2,
                        .heads = 4,
                        .key_heads = 2,
                        .queries = 23,
                        .keys = 23,
                        .query_depth = 8,
                        .key_depth = 8,
                        .attention_depth = 8,
                        .value_depth = 5};

void expect_in_worlds(const SharedProblem& problem, std::initializer_list<int64_t> worlds,
                      std::initializer_list<Exchange> ways, double maximum = bar) {
  const Reference one(problem);
  for (const int64_t ranks : worlds) {
    const auto shardings = shardings_of(problem.query.size(-2), ranks);
    for (size_t i = 0; i < shardings.size(); ++i) {
      for (const Exchange exchange : ways) {
        SCOPED_TRACE(fmt::format("{} ranks, sharding {}, {}", ranks, i,
                                 exchange == Exchange::ring ? "ring" : "gather"));
        expect_as_one(problem, one, {.queries = shardings[i], .exchange = exchange}, maximum);
      }
    }
  }
}

TEST(DistributedAttention, IsThatOfTheWholeInEveryScope) {
  const SharedProblem plain = problem_of(score_row("scaled_dot"), self, at::kFloat);
  auto cases = reference::scope_cases(self);
  cases.push_back({"around", around(at::arange(23, at::kDouble).mul(1.3).sub(2), 3), {}});
  for (const ScopeCase& scope : cases) {
    SCOPED_TRACE(scope.name);
    expect_in_worlds(
        with(plain, {}, [&](AttentionSpec& spec, const Tensors&) { spec.scope = scope.scope; }),
        {1, 2, 3, 4, 8}, {Exchange::gather, Exchange::ring});
  }
}

// Together with a sink, a soft cap, dropout and a causal scope.
TEST(DistributedAttention, IsThatOfTheWholeWithEveryBias) {
  const SharedProblem plain = problem_of(score_row("scaled_dot"), self, at::kFloat);
  for (const BiasCase& c : reference::bias_cases(self, 8, 3)) {
    SCOPED_TRACE(c.name);
    Tensors tensors = c.tensors;
    tensors.push_back(at::tensor(std::vector<float>{0.3F, -1, 2, 0}));
    expect_in_worlds(with(plain, tensors,
                          [&](AttentionSpec& spec, const Tensors& x) {
                            spec.scope = causal() | prefix(3);
                            spec.bias = c.make({x.begin(), x.end() - 1});
                            spec.sink = x.back();
                            spec.soft_cap = 4;
                            spec.dropout = {.probability = 0.3, .seed = 17};
                          }),
                     {2, 3, 8}, {Exchange::gather, Exchange::ring});
  }
}

TEST(DistributedAttention, IsThatOfTheWholeOfEveryScore) {
  for (const ScoreRow& row : score_table()) {
    for (const bool parameter_heads : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", row.name, parameter_heads));
      const SharedProblem plain = problem_of(row, self, at::kFloat, parameter_heads);
      expect_in_worlds(with(plain, {},
                            [](AttentionSpec& spec, const Tensors&) {
                              spec.scope = window(9);
                              spec.dropout = {.probability = 0.2, .seed = 4};
                            }),
                       {2, 3}, {Exchange::gather, Exchange::automatic});
    }
  }
}

TEST(DistributedAttention, IsThatOfTheWholeWithEveryNormaliser) {
  for (const NormaliserRow& row : normaliser_table()) {
    SCOPED_TRACE(row.name);
    const SharedProblem plain = problem_of(
        score_row(row.running_sums ? "positive_features" : "scaled_dot"), self, at::kFloat);
    for (const uint64_t seed : {0, 9}) {
      const std::string text(row.temperature == Temperature::none ? row.name
                                                                  : std::string(row.name) + ":0.7");
      expect_in_worlds(with(plain, {},
                            [&](AttentionSpec& spec, const Tensors&) {
                              spec.normaliser = Normaliser(text, seed);
                              spec.scope = causal();
                            }),
                       {2, 3}, {Exchange::gather, Exchange::automatic});
    }
  }
}

// Cross-attention between sequences with different lengths per rank; two and three axes.
TEST(DistributedAttention, CrossesFromOneSequenceToAnother) {
  constexpr Sizes sizes = {.batch = 2,
                           .heads = 1,
                           .key_heads = 1,
                           .queries = 7,
                           .keys = 31,
                           .query_depth = 4,
                           .key_depth = 4,
                           .attention_depth = 4};
  const SharedProblem four = problem_of(score_row("scaled_dot"), sizes, at::kFloat);
  const auto choose = [](AttentionSpec& spec, const Tensors& x) {
    spec.scope = causal(24);
    spec.bias = alibi(x[0], 24);
  };
  SharedProblem three = four, two = four;
  for (auto part : {&SharedProblem::query, &SharedProblem::key, &SharedProblem::value}) {
    three.*part = (four.*part).squeeze(1);
    two.*part = (four.*part)[1][0];
  }
  for (const SharedProblem& problem : {four, three, two}) {
    const SharedProblem chosen = with(problem, {at::tensor(std::vector<float>{0.2F})}, choose);
    const Reference one(chosen);
    for (const Exchange exchange : exchanges)
      for (const Sharding& keys : shardings_of(31, 3))
        expect_as_one(chosen, one,
                      {.queries = contiguous_sharding(7, 3), .keys = keys, .exchange = exchange},
                      bar);
  }
}

// Alignment uses the lengths of the whole sequences.
TEST(DistributedAttention, AlignsTheWholeSequences) {
  constexpr Sizes sizes = {.batch = 2,
                           .heads = 2,
                           .key_heads = 1,
                           .queries = 7,
                           .keys = 31,
                           .query_depth = 4,
                           .key_depth = 4,
                           .attention_depth = 4};
  const SharedProblem plain = problem_of(score_row("scaled_dot"), sizes, at::kFloat);
  for (const bool by_entry : {false, true}) {
    const SharedProblem problem =
        with(plain, {at::tensor({0.2F, 0.1F})}, [&](AttentionSpec& spec, const Tensors& x) {
          spec.scope = causal() | global_tokens(2);
          if (by_entry) spec.scope = spec.scope & key_lengths(at::tensor({31, 20}, at::kLong));
          spec.bias = alibi(x[0]);
          spec.align = Align::last;
        });
    const Reference one(problem);
    for (const Exchange exchange : exchanges)
      for (const Sharding& keys : shardings_of(31, 3))
        expect_as_one(problem, one,
                      {.queries = contiguous_sharding(7, 3), .keys = keys, .exchange = exchange},
                      bar);
  }
}

// Ranks with queries that see no key, ranks with keys that no query sees, and no keys at all.
TEST(DistributedAttention, KeepsRowsWithoutKeysApart) {
  const SharedProblem plain = problem_of(score_row("scaled_dot"), self, at::kFloat);
  const Tensors sink = {at::ones({4})};
  const Scope scopes[] = {window(0, 5) & prefix(6), causal(-12),
                          key_lengths(at::tensor(std::vector<int64_t>{0, 3}, at::kLong)),
                          prefix(0)};
  for (const Scope& scope : scopes) {
    for (const bool has_sink : {false, true})
      expect_in_worlds(with(plain, has_sink ? sink : Tensors(),
                            [&](AttentionSpec& spec, const Tensors& x) {
                              spec.scope = scope;
                              if (has_sink) spec.sink = x[0];
                            }),
                       {4}, {Exchange::gather, Exchange::ring});
  }
}

// In float64 differences are smaller than float32 rounding; 16 bits are only for storage and
// messages.
TEST(DistributedAttention, ComputesInThePrecisionOfTheArithmetic) {
  const auto choose = [](AttentionSpec& spec, const Tensors& x) {
    spec.scope = causal();
    spec.bias = alibi(x[0]);
  };
  const Tensors slopes = {alibi_slopes(4)};
  expect_in_worlds(with(problem_of(score_row("additive"), self, at::kDouble), slopes, choose), {3},
                   {Exchange::gather, Exchange::ring}, 1e-14);
  const SharedProblem halves =
      with(problem_of(score_row("scaled_dot"), self, at::kBFloat16), slopes, choose);
  // Two roundings to 8 bits.
  expect_in_worlds(halves, {3}, {Exchange::gather, Exchange::ring}, 0x1p-8);
}

// Ties between ranks: exact at any size if gathered; limited by the digits of lse if merged.
TEST(DistributedAttention, StaysExactAtLargeScores) {
  SharedProblem problem = problem_of(score_row("dot"), self, at::kFloat);
  const Tensor query = problem.query.sign(), key = problem.key.sign();
  const auto expect_at = [&](double size, std::initializer_list<Exchange> ways) {
    problem.query = query * size;
    problem.key = key * size;
    const auto choose = [](AttentionSpec& spec, const Tensors&) { spec.scope = causal(); };
    expect_in_worlds(with(problem, {}, choose), {3}, ways);
  };
  expect_at(32, {Exchange::gather, Exchange::ring});
  expect_at(1024, {Exchange::gather});
}

TEST(DistributedAttention, MisuseSaysWhatIsWanted) {
  const auto world = single_process();
  const Tensor x = at::ones({1, 1, 6, 4}).requires_grad_();
  const Sharding whole = contiguous_sharding(6, 1);
  const auto call = [&](const SharedSequences& shared, const AttentionSpec& spec = {}) {
    return distributed_attention(*world, x, x, x, spec, shared);
  };
  expect_errors({
      {[&] { call({.queries = contiguous_sharding(6, 2)}); },
       "queries are spread over 2 ranks; there are 1"},
      {[&] {
         call({.queries = whole, .keys = {{{0, 2}, {3, 3}}}});
       },
       "keys have a run from position 3 on, and 2 is the next"},
      {[&] {
         call({.queries = {{{0, -1}}}});
       },
       "queries have a run of -1 positions"},
      {[&] { call({.queries = contiguous_sharding(5, 1)}); },
       "query has 6 positions, the sharding gives rank 0 5"},
      {[&] { call({.queries = whole, .keys = contiguous_sharding(7, 1)}); },
       "key has 6 positions, the sharding gives rank 0 7"},
      {[&] { distributed_attention(*world, x, x, {}, {}, {.queries = whole}); },
       "value has no axis of positions"},
      {[&] {
         distributed_attention(*world, at::empty({6, 4}, at::kMeta), x, x, {}, {.queries = whole});
       },
       "query is on meta; processes exchange tensors on the CPU"},
      {[&] { call({.queries = whole, .exchange = Exchange::ring}, {.normaliser = "sparsemax"}); },
       "exchange is ring, but normaliser sparsemax needs all keys of a query at once; take "
       "automatic"},
      {[&] { call({.queries = whole, .exchange = Exchange::ring}, {.score = "location"}); },
       "score location gives each query a number for every key"},
      {[&] { call({.queries = whole}, {.scope = key_lengths(at::full({1}, 7, at::kLong))}); },
       "key lengths must be between 0 and the number of keys 6, got 7 to 7"},
      {[&] {
         call({.queries = whole}, {.bias = dense_bias(at::ones({6, 7}))});
       },
       "the dense bias of shape [6, 7]: 7 in place of the 6 of the whole sequence"},
      {[&] { call({.queries = whole}, {.bias = gaussian(at::ones({5}), at::ones({1}))}); },
       "the gaussian's centres of shape [5]: 5 in place of the 6"},
      {[&] { contiguous_sharding(-1, 2); }, "got -1 positions for 2 ranks"},
      {[&] { zigzag_sharding(3, 0); }, "got 3 positions for 0 ranks"},
  });
  const Tensor sum = call({.queries = whole}).context.sum();
  EXPECT_THROW(sum.backward({}, /*keep_graph=*/true, /*create_graph=*/true), Error);
}

}  // namespace distributed_test
}  // namespace attend
