#include "attend/kernels/recurrence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "attend/base/error.h"
#include "tests/kernels/recurrence_reference.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace recurrence_test {

template <class S>
std::vector<S> stored_numbers(const std::vector<double>& from) {
  std::vector<S> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if constexpr (kIsHalf<S>)
      to[i] = narrow<S>(static_cast<float>(from[i]));
    else
      to[i] = static_cast<S>(from[i]);
  }
  return to;
}

template <class S>
std::vector<double> read_numbers(const std::vector<S>& from) {
  std::vector<double> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if constexpr (kIsHalf<S>)
      to[i] = widen(from[i]);
    else
      to[i] = from[i];
  }
  return to;
}

// Rounds the arrays to the storage type, so that the reference has the inputs of the kernel.
template <class S>
void round_arrays(RecurrenceCase& c) {
  for (auto* x : {&c.arrays.query, &c.arrays.key, &c.arrays.value, &c.arrays.grad_output})
    *x = read_numbers(stored_numbers<S>(*x));
}

// Outputs start as NaN, which reveals unwritten numbers.
template <class S>
std::vector<S> unwritten(size_t count) {
  return stored_numbers<S>(std::vector<double>(count, std::numeric_limits<double>::quiet_NaN()));
}

struct RecurrenceRun {
  int64_t chunk = 0;
  int threads = 1;
  double units = 16;  // error in the last place of the largest number
};

template <class S>
RecurrenceResults<double> run(const RecurrenceCase& c, const RecurrenceRun& how = {}) {
  using T = Compute<S>;
  const RecurrenceShape& s = c.shape;
  const auto query = stored_numbers<S>(c.arrays.query), key = stored_numbers<S>(c.arrays.key),
             value = stored_numbers<S>(c.arrays.value),
             grad_output = stored_numbers<S>(c.arrays.grad_output);
  const auto decay = stored_numbers<T>(c.arrays.decay),
             strength = stored_numbers<T>(c.arrays.strength),
             initial = stored_numbers<T>(c.arrays.initial),
             grad_last = stored_numbers<T>(c.arrays.grad_last);
  Recurrence<S> p;
  p.shape = s;
  p.query = contiguous(query.data(), s.key_heads, s.tokens, s.depth);
  p.key = contiguous(key.data(), s.key_heads, s.tokens, s.depth);
  p.value = contiguous(value.data(), s.heads, s.tokens, s.value_depth);
  p.decay = contiguous(decay.data(), s.heads, s.tokens, s.decay_depth);
  if (c.has_strength) p.strength = contiguous(strength.data(), s.heads, s.tokens, 1);
  if (c.has_initial) p.initial = initial.data();
  p.delta = c.delta;
  p.scale = c.scale;
  p.normalise = c.normalise;
  p.chunk = how.chunk;
  if (!c.offsets.empty()) {
    p.offsets = c.offsets.data();
    p.sequences = c.sequences();
  }
  auto output = unwritten<S>(value.size());
  auto last = unwritten<T>(initial.size());
  auto kept = unwritten<T>(static_cast<size_t>(kept_numbers(p)));
  recurrence_forward(
      p, {contiguous(output.data(), s.heads, s.tokens, s.value_depth), last.data(), kept.data()},
      how.threads);
  const auto rows = static_cast<size_t>(c.rows());
  auto grad_query = unwritten<S>(rows * s.depth), grad_key = grad_query;
  auto grad_value = unwritten<S>(value.size());
  auto grad_decay = unwritten<T>(decay.size()), grad_strength = unwritten<T>(strength.size()),
       grad_initial = unwritten<T>(initial.size());
  recurrence_backward(p,
                      {contiguous(grad_output.data(), s.heads, s.tokens, s.value_depth),
                       grad_last.data(), kept.data()},
                      {contiguous(grad_query.data(), s.heads, s.tokens, s.depth),
                       contiguous(grad_key.data(), s.heads, s.tokens, s.depth),
                       contiguous(grad_value.data(), s.heads, s.tokens, s.value_depth),
                       contiguous(grad_decay.data(), s.heads, s.tokens, s.decay_depth),
                       contiguous(grad_strength.data(), s.heads, s.tokens, 1), grad_initial.data()},
                      how.threads);
  return {read_numbers(output),        read_numbers(last),        read_numbers(grad_query),
          read_numbers(grad_key),      read_numbers(grad_value),  read_numbers(grad_decay),
          read_numbers(grad_strength), read_numbers(grad_initial)};
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double y : x) most = std::max(most, std::abs(y));
  return most;
}

template <class A>
double distance(const std::vector<A>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double error = std::abs(static_cast<double>(a[i]) - b[i]);
    most = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(most, error);
  }
  return most;
}

// The rule of design.md: twice the error of the loop in the arithmetic of the kernel, three times
// for gradients, plus a few units in the last place of the largest number. A long chunk has
// longer sums than the loop.
template <class S, class Exact>
void expect_close(const RecurrenceCase& c, const RecurrenceRun& how = {}) {
  const auto got = run<S>(c, how);
  const auto plain = recurrence_reference<Compute<S>>(c);
  const auto wide = recurrence_reference<Exact>(c);
  const double fine = how.units * std::numeric_limits<Compute<S>>::epsilon() *
                      std::max(1.0, static_cast<double>(how.chunk) / 32);
  const double unit = kIsHalf<S> ? (std::is_same_v<S, BFloat16> ? 0x1p-8 : 0x1p-11) : fine;
  const auto expect = [&](const char* name, auto field, double factor, double floor) {
    const auto exact = numbers_of<double>(field(wide));
    EXPECT_LE(distance(field(got), exact),
              factor * distance(field(plain), exact) + floor * largest(exact))
        << name << ", largest " << largest(exact);
  };
  expect(
      "output", [](const auto& r) { return r.output; }, 2, unit);
  expect(
      "last", [](const auto& r) { return r.last; }, 2, fine);
  expect(
      "query", [](const auto& r) { return r.query; }, 3, unit);
  expect(
      "key", [](const auto& r) { return r.key; }, 3, unit);
  expect(
      "value", [](const auto& r) { return r.value; }, 3, unit);
  if (c.shape.decay_depth > 0)
    expect(
        "decay", [](const auto& r) { return r.decay; }, 3, fine);
  if (c.has_strength)
    expect(
        "strength", [](const auto& r) { return r.strength; }, 3, fine);
  if (c.has_initial)
    expect(
        "initial", [](const auto& r) { return r.initial; }, 3, fine);
}

RecurrenceCase a_case(bool delta, int64_t decay_depth, int64_t tokens, double least_decay = -0.5,
                      int64_t depth = 19, int64_t value_depth = 23) {
  RecurrenceCase c{{.batch = 2,
                    .heads = 2,
                    .key_heads = 1,
                    .tokens = tokens,
                    .depth = depth,
                    .value_depth = value_depth,
                    .decay_depth = decay_depth == 2 ? depth : decay_depth},
                   delta};
  c.normalise = delta;
  c.scale = 0.25;
  draw(c, least_decay, static_cast<uint64_t>(tokens + 7 * depth));
  return c;
}

// Calls check(case) for each rule and kind of decay.
template <class Check>
void on_every_rule(const Check& check) {
  for (const bool delta : {false, true})
    for (const int64_t decay : {0, 1, 2}) {
      SCOPED_TRACE((delta ? "delta, decay " : "no delta, decay ") + std::to_string(decay));
      check(delta, decay);
    }
}

TEST(Recurrence, EqualsTheLoopForEachLength) {
  on_every_target([] {
    on_every_rule([](bool delta, int64_t decay) {
      for (const int64_t tokens : {1, 3, 5, 59, 300}) {
        SCOPED_TRACE(tokens);
        expect_close<float, double>(a_case(delta, decay, tokens));
      }
    });
  });
}

TEST(Recurrence, EqualsTheLoopForLongSequences) {
  on_every_rule([](bool delta, int64_t decay) {
    expect_close<float, double>(a_case(delta, decay, 1000, -0.02, 8, 5));
  });
}

TEST(Recurrence, EqualsTheLoopForEachChunk) {
  on_every_rule([](bool delta, int64_t decay) {
    for (const int64_t chunk : {1, 2, 7, 16, 64, 129, 256}) {
      SCOPED_TRACE(chunk);
      expect_close<float, double>(a_case(delta, decay, 300), {.chunk = chunk});
    }
  });
}

TEST(Recurrence, EqualsTheLoopForEachDepth) {
  on_every_target([] {
    on_every_rule([](bool delta, int64_t decay) {
      for (const auto& [depth, value_depth] :
           {std::pair<int64_t, int64_t>{1, 1}, {3, 16}, {64, 64}, {111, 59}, {16, 0}}) {
        SCOPED_TRACE(depth);
        expect_close<float, double>(a_case(delta, decay, 37, -0.5, depth, value_depth));
      }
    });
  });
}

TEST(Recurrence, EqualsTheLoopInEachType) {
  on_every_target([] {
    on_every_rule([](bool delta, int64_t decay) {
      const RecurrenceCase c = a_case(delta, decay, 59);
      expect_close<double, long double>(c);
      RecurrenceCase rounded = c;
      round_arrays<BFloat16>(rounded);
      expect_close<BFloat16, double>(rounded);
      rounded = c;
      round_arrays<Float16>(rounded);
      expect_close<Float16, double>(rounded);
    });
  });
}

TEST(Recurrence, TakesDecaysNear0And1) {
  on_every_target([] {
    on_every_rule([](bool delta, int64_t decay) {
      for (const double least : {-1e-6, -20.0, -80.0, -1000.0}) {
        SCOPED_TRACE(least);
        // Without fused multiply-adds, e^g has a relative error of |g| units; |g| is up to 87.
        expect_close<float, double>(a_case(delta, decay, 59, least), {.units = 128});
        RecurrenceCase forgets = a_case(delta, decay, 59);
        for (size_t i = 0; i < forgets.arrays.decay.size(); i += 7)
          forgets.arrays.decay[i] = -std::numeric_limits<double>::infinity();
        if (decay > 0) {
          const auto got = run<float>(forgets);
          const auto exact = recurrence_reference<double>(forgets);
          EXPECT_LE(distance(got.output, exact.output), 1e-5 * largest(exact.output));
          EXPECT_LE(distance(got.last, exact.last), 1e-5 * largest(exact.last));
        }
      }
    });
  });
}

TEST(Recurrence, TakesRaggedBatches) {
  on_every_rule([](bool delta, int64_t decay) {
    RecurrenceCase c = a_case(delta, decay, 400);
    c.shape.batch = 1;
    c.offsets = {0, 0, 1, 4, 131, 131, 259, 400};
    draw(c, -0.5, 3);
    expect_close<float, double>(c);
  });
}

TEST(Recurrence, TakesWhatIsOptional) {
  for (const bool delta : {false, true}) {
    RecurrenceCase c = a_case(delta, 1, 59);
    c.has_strength = c.has_initial = c.normalise = false;
    c.scale = 1;
    expect_close<float, double>(c);
  }
}

// Keys that are longer than 1, with strengths up to 2: the state may grow.
TEST(Recurrence, TakesAnyKeysAndStrengths) {
  for (const double size : {0.0, 1e-3, 1.5}) {
    RecurrenceCase c = a_case(true, 1, 40);
    c.normalise = false;
    for (double& k : c.arrays.key) k = static_cast<float>(k * size);
    for (double& b : c.arrays.strength) b = static_cast<float>(b * 2);
    expect_close<float, double>(c);
  }
}

// Decoding keeps no states for backward; the new state may replace the old one.
TEST(Recurrence, TakesOneStepInPlace) {
  on_every_target([] {
    on_every_rule([](bool delta, int64_t decay) {
      for (const int64_t value_depth : {16, 64, 5}) {
        const RecurrenceCase c = a_case(delta, decay, 1, -0.5, 7, value_depth);
        const auto exact = recurrence_reference<double>(c);
        const RecurrenceShape& s = c.shape;
        const auto query = stored_numbers<float>(c.arrays.query),
                   key = stored_numbers<float>(c.arrays.key),
                   value = stored_numbers<float>(c.arrays.value),
                   factors = stored_numbers<float>(c.arrays.decay),
                   strength = stored_numbers<float>(c.arrays.strength);
        auto state = stored_numbers<float>(c.arrays.initial),
             output = unwritten<float>(value.size());
        Recurrence<float> p;
        p.shape = s;
        p.query = contiguous(query.data(), s.key_heads, 1, s.depth);
        p.key = contiguous(key.data(), s.key_heads, 1, s.depth);
        p.value = contiguous(value.data(), s.heads, 1, s.value_depth);
        p.decay = contiguous(factors.data(), s.heads, 1, s.decay_depth);
        p.strength = contiguous(strength.data(), s.heads, 1, 1);
        p.initial = state.data();
        p.delta = delta;
        p.normalise = c.normalise;
        p.scale = c.scale;
        recurrence_forward<float>(
            p, {contiguous(output.data(), s.heads, 1, s.value_depth), state.data()});
        EXPECT_LE(distance(output, exact.output), 1e-5 * (1 + largest(exact.output)));
        EXPECT_LE(distance(state, exact.last), 1e-5 * (1 + largest(exact.last)));
      }
    });
  });
}

// Batches are padded; an answer must not depend on the others of its batch.
TEST(Recurrence, HasTheSameBitsBeforePadding) {
  on_every_target([] {
    on_every_rule([](bool delta, int64_t decay) {
      for (const int64_t tokens : {1, 2, 5, 16, 17}) {
        RecurrenceCase padded = a_case(delta, decay, 40);
        padded.shape.batch = 1;
        padded.shape.heads = 1;
        padded.has_initial = false;
        draw(padded, -0.5, 9);
        RecurrenceCase whole = padded;
        whole.shape.tokens = tokens;
        const auto long_run = run<float>(padded);
        const auto short_run = run<float>(whole);
        const auto count = static_cast<size_t>(tokens * padded.shape.value_depth);
        EXPECT_TRUE(std::equal(short_run.output.begin(), short_run.output.begin() + count,
                               long_run.output.begin()))
            << tokens;
      }
    });
  });
}

TEST(Recurrence, HasTheSameBitsForAnyNumberOfThreads) {
  const RecurrenceCase c = a_case(true, 2, 200);
  const auto one = run<float>(c, {.threads = 1}), two = run<float>(c, {.threads = 2});
  EXPECT_EQ(one.output, two.output);
  EXPECT_EQ(one.key, two.key);
  EXPECT_EQ(one.decay, two.decay);
}

// The loop's own gradients against differences.
TEST(Recurrence, ReferenceHasGradients) {
  on_every_rule([](bool delta, int64_t decay) {
    RecurrenceCase c = a_case(delta, decay, 6, -0.5, 3, 2);
    c.normalise = delta;
    const auto results = recurrence_reference<double>(c);
    const auto loss = [&] {
      const auto r = recurrence_reference<double>(c);
      double sum = 0;
      for (size_t i = 0; i < r.output.size(); ++i) sum += r.output[i] * c.arrays.grad_output[i];
      for (size_t i = 0; i < r.last.size(); ++i) sum += r.last[i] * c.arrays.grad_last[i];
      return sum;
    };
    const auto expect = [&](std::vector<double>& input, const std::vector<double>& gradient,
                            int64_t shared) {
      const int64_t per_head = c.shape.tokens * c.shape.depth;
      for (size_t i = 0; i < input.size(); i += 3) {
        const double kept = input[i], step = 1e-5;
        input[i] = kept + step;
        const double up = loss();
        input[i] = kept - step;
        const double slope = (up - loss()) / (2 * step);
        input[i] = kept;
        double given = 0;
        const auto n = static_cast<int64_t>(i);
        for (int64_t h = 0; h < shared; ++h)
          given +=
              gradient[shared == 1 ? n : (n / per_head * shared + h) * per_head + n % per_head];
        EXPECT_NEAR(given, slope, 1e-6 * (1 + std::abs(slope)));
      }
    };
    expect(c.arrays.query, results.query, 2);
    expect(c.arrays.key, results.key, 2);
    expect(c.arrays.value, results.value, 1);
    expect(c.arrays.decay, results.decay, 1);
    expect(c.arrays.strength, results.strength, 1);
    expect(c.arrays.initial, results.initial, 1);
  });
}

TEST(Recurrence, NanStaysInItsHead) {
  RecurrenceCase c = a_case(true, 1, 59);
  c.shape.key_heads = 2;
  draw(c, -0.5, 1);
  const auto before = run<float>(c);
  c.arrays.key[5] = std::numeric_limits<double>::quiet_NaN();
  const auto after = run<float>(c);
  const size_t head = 59 * 23;
  EXPECT_TRUE(std::isnan(after.output[0]) || std::isnan(after.output[head - 1]));
  EXPECT_TRUE(
      std::equal(before.output.begin() + head, before.output.end(), after.output.begin() + head));
}

template <class Change>
std::string message(const Change& change) {
  std::vector<float> numbers(4096);
  const View<const float> all{numbers.data(), 64, 16, 4};
  const std::vector<int64_t> offsets = {0, 3, 2, 4};
  Recurrence<float> p{{.batch = 1,
                       .heads = 2,
                       .key_heads = 1,
                       .tokens = 4,
                       .depth = 4,
                       .value_depth = 4,
                       .decay_depth = 1},
                      all,
                      all,
                      all,
                      all,
                      all};
  p.sequences = 3;
  change(p, offsets);
  try {
    recurrence_forward<float>(p, {{numbers.data() + 2048, 64, 16, 4}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Recurrence, RefusesWhatDoesNotFit) {
  using ::testing::HasSubstr;
  EXPECT_EQ(message([](auto&, const auto&) {}), "");
  EXPECT_THAT(message([](auto& p, const auto&) { p.shape.key_heads = 3; }),
              HasSubstr("key_heads is 3"));
  EXPECT_THAT(message([](auto& p, const auto&) { p.shape.decay_depth = 3; }),
              HasSubstr("decay_depth is 3; it must be 0, 1 or shape.depth, 4"));
  EXPECT_THAT(message([](auto& p, const auto&) { p.shape.tokens = -1; }),
              HasSubstr("tokens is -1"));
  EXPECT_THAT(message([](auto& p, const auto&) { p.decay = {}; }), HasSubstr("decay is null"));
  EXPECT_THAT(message([](auto& p, const auto&) { p.chunk = -1; }), HasSubstr("chunk is -1"));
  EXPECT_THAT(message([](auto& p, const auto&) { p.scale = NAN; }), HasSubstr("scale is nan"));
  EXPECT_THAT(message([](auto& p, const auto& offsets) { p.offsets = offsets.data(); }),
              HasSubstr("offsets[2] is 2, after 3"));
}

}  // namespace recurrence_test
}  // namespace attend::kernels::testing
