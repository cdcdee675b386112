// Tests of recurrences over sequences shared by several ranks, against the whole.
#include "attend/parallel/distributed_recurrence.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/thread_world.h"

namespace attend {
namespace distributed_recurrence_test {

using at::Tensor;

constexpr int64_t length = 23, heads = 2, depth = 5, value_depth = 3;

// The inputs of a whole sequence by name.
struct Inputs {
  Tensor query, key, value, decay, strength, bonus;

  std::vector<Tensor*> all() {
    std::vector<Tensor*> given;
    for (Tensor* x : {&query, &key, &value, &decay, &strength, &bonus})
      if (x->defined()) given.push_back(x);
    return given;
  }
};

Inputs inputs_for(const RecurrenceRow& row) {
  const auto generator = at::detail::createCPUGenerator(5);
  const auto normal = [&](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::TensorOptions(at::kDouble));
  };
  const auto uniform = [&](at::IntArrayRef sizes) {
    return at::rand(sizes, generator, at::TensorOptions(at::kDouble));
  };
  Inputs x{normal({2, 1, length, depth}),
           normal({2, 1, length, depth}),
           normal({2, heads, length, value_depth}),
           {},
           {},
           {}};
  if (row.decay == DecayKind::head) x.decay = -uniform({heads});
  if (row.decay == DecayKind::token) x.decay = -uniform({2, heads, length});
  if (row.decay == DecayKind::row) x.decay = -uniform({2, heads, length, depth});
  if (row.strength) x.strength = uniform({2, heads, length});
  if (row.bonus) x.bonus = normal({heads, depth});
  return x;
}

// The part of a rank, or a copy of what has no axis of tokens. Requires gradients.
Tensor part_of(const Tensor& x, const Runs& runs) {
  return (x.dim() > 2 ? at_runs(x, runs, 2) : x).detach().clone().requires_grad_();
}

Inputs part_of(Inputs& whole, const Runs& runs) {
  Inputs part;
  const std::vector<Tensor*> to = {&part.query, &part.key,      &part.value,
                                   &part.decay, &part.strength, &part.bonus};
  const std::vector<const Tensor*> from = {&whole.query, &whole.key,      &whole.value,
                                           &whole.decay, &whole.strength, &whole.bonus};
  for (size_t i = 0; i < to.size(); ++i)
    if (from[i]->defined()) *to[i] = part_of(*from[i], runs);
  return part;
}

RecurrenceSpec spec_of(const RecurrenceRow& row, const Inputs& x) {
  RecurrenceSpec spec;
  spec.decay = x.decay;
  spec.strength = x.strength;
  spec.bonus = x.bonus;
  spec.delta = row.delta;
  spec.l2_normalise = row.unit_keys;
  return spec;
}

// Depends on every number of the result, with other weights at each position.
Tensor loss_of(const Tensor& output, const Runs& runs, const Tensor& state, bool with_state) {
  const Tensor weights = at::arange(2 * heads * length * value_depth, at::kDouble).sin();
  Tensor loss = (output * at_runs(weights.view({2, heads, length, value_depth}), runs, 2)).sum();
  // The state is the same on every rank; one of them counts it.
  if (with_state) loss = loss + state.cos().sum();
  return loss;
}

void expect_as_one(const RecurrenceRow& row, const Sharding& sharding) {
  Inputs whole = inputs_for(row);
  const Runs everything = {{0, length}};
  Inputs one = part_of(whole, everything);
  const auto wanted = linear_recurrence(one.query, one.key, one.value, spec_of(row, one));
  loss_of(wanted.output, everything, wanted.state, true).backward();
  const auto ranks = static_cast<int64_t>(sharding.size());
  std::vector<Inputs> parts;
  for (const Runs& runs : sharding) parts.push_back(part_of(whole, runs));
  std::vector<Tensor> outputs(sharding.size()), states(sharding.size());
  ThreadWorld(ranks).run([&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    Inputs& x = parts[rank];
    const auto found =
        distributed_recurrence(world, x.query, x.key, x.value, spec_of(row, x), sharding);
    outputs[rank] = found.output.detach();
    states[rank] = found.state.detach();
    loss_of(found.output, sharding[rank], found.state, rank == 0).backward();
  });
  EXPECT_TRUE(at::allclose(joined(outputs, sharding, 2), wanted.output, 1e-10, 1e-12));
  for (const Tensor& state : states) EXPECT_TRUE(at::allclose(state, wanted.state, 1e-10, 1e-12));
  for (size_t i = 0; i < one.all().size(); ++i) {
    std::vector<Tensor> gradients;
    for (Inputs& part : parts) gradients.push_back(part.all()[i]->grad());
    const Tensor total =
        one.all()[i]->dim() > 2 ? joined(gradients, sharding, 2) : at::stack(gradients).sum(0);
    EXPECT_TRUE(at::allclose(total, one.all()[i]->grad(), 1e-9, 1e-11)) << "input " << i;
  }
}

TEST(DistributedRecurrence, IsThatOfTheWhole) {
  for (const RecurrenceRow& row : recurrence_table()) {
    SCOPED_TRACE(row.name);
    for (const int64_t ranks : {1, 2, 4}) {
      expect_as_one(row, zigzag_sharding(length, ranks));
      expect_as_one(row, contiguous_sharding(length, ranks));
    }
    // Runs of no tokens, and more ranks than tokens need.
    expect_as_one(row, {{{0, 0}, {21, 2}}, {{0, 20}}, {{20, 1}, {23, 0}}});
  }
}

// Runs shorter than the rows before them.
TEST(DistributedRecurrence, FindsTheRowsBeforeItsRuns) {
  const Tensor whole = at::arange(2 * 9 * 2, at::kDouble).view({2, 9, 2});
  const Tensor padded = at::constant_pad_nd(whole, {0, 0, 3, 0});
  const Sharding sharding = {{{0, 1}, {6, 3}}, {{1, 1}, {2, 4}}, {{9, 0}}};
  std::vector<Tensor> gradients(3);
  ThreadWorld(3).run([&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    const Tensor own = at_runs(whole, sharding[rank], 1).requires_grad_();
    const auto rows = rows_before_runs(world, own, 3, sharding);
    ASSERT_EQ(rows.size(), sharding[rank].size());
    Tensor sum = at::zeros({}, at::kDouble);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(rows[i].equal(padded.narrow(1, sharding[rank][i].first, 3)));
      sum = sum + rows[i].sum();
    }
    sum.backward();
    gradients[rank] = own.grad();
  });
  // A row counts once for each run that begins within the three rows after it.
  const Tensor counts = joined(gradients, sharding, 1)[0].select(1, 0);
  EXPECT_TRUE(counts.equal(at::tensor({2, 1, 0, 1, 1, 1, 1, 1, 1}, at::kDouble))) << counts;
}

TEST(Sharding, IsMirrored) {
  const Sharding sharding = zigzag_sharding(length, 3);
  const Tensor whole = at::arange(length);
  const Sharding turned = mirrored(sharding);
  check_sharding(turned, 3, "tokens");
  for (size_t r = 0; r < sharding.size(); ++r)
    EXPECT_TRUE(at_runs(whole.flip(0), turned[r], 0).equal(at_runs(whole, sharding[r], 0).flip(0)));
}

TEST(DistributedRecurrence, RefusesWhatDoesNotFit) {
  const RecurrenceRow& row = recurrence_row("gla");
  Inputs x = inputs_for(row);
  const auto refusal = [&](RecurrenceSpec spec, const Sharding& sharding) {
    try {
      ThreadWorld(1).run([&](Communicator& world) {
        distributed_recurrence(world, x.query, x.key, x.value, spec, sharding);
      });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using testing::HasSubstr;
  RecurrenceSpec spec = spec_of(row, x);
  EXPECT_EQ(refusal(spec, {{{0, length}}}), "");
  EXPECT_THAT(refusal(spec, {{{0, length - 1}}}), HasSubstr("query has 23 tokens"));
  spec.initial = at::zeros({2, heads, depth, value_depth}, at::kDouble);
  EXPECT_THAT(refusal(spec, {{{0, length}}}), HasSubstr("got an initial state"));
}

}  // namespace distributed_recurrence_test
}  // namespace attend
