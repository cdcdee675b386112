#include "attend/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace cached_attention_test {

// Rows that share the slots of steps, like hypotheses.
struct Caches {
  int64_t rows, heads, key_heads, depth, value_depth, keys;
  bool additive = false;
  CacheType type = CacheType::float32;
  std::vector<std::vector<float>> steps = {};       // per step a slot for each row, as cached
  std::vector<std::vector<BFloat16>> rounded = {};  // the same in bfloat16
  std::vector<const void*> slots = {};
  std::vector<int32_t> places = {};
  std::vector<int64_t> lengths = {};
  std::vector<float> query = {}, vector = {};
  std::vector<float> bias = {};  // [heads][rows + keys]; empty: none
  std::vector<int64_t> bias_offsets = {};

  int64_t bias_stride() const { return rows + keys; }

  // With a gap between a key and its value, and another after the value.
  int64_t value_offset() const { return key_heads * depth + 16; }
  int64_t slot() const { return value_offset() + key_heads * value_depth + 48; }

  void draw() {
    std::mt19937_64 random(static_cast<uint64_t>(rows * 131 + keys));
    std::normal_distribution<float> normal;
    const auto numbers = [&](int64_t count) {
      std::vector<float> all(static_cast<size_t>(count));
      for (float& each : all) each = normal(random);
      return all;
    };
    for (int64_t j = 0; j < keys; ++j) steps.push_back(numbers(rows * slot()));
    for (auto& step : steps) {
      if (type == CacheType::float32) {
        slots.push_back(step.data());
        continue;
      }
      std::vector<BFloat16>& kept = rounded.emplace_back();
      for (float& each : step) {
        kept.push_back(narrow<BFloat16>(each));
        each = widen(kept.back());
      }
      slots.push_back(kept.data());
    }
    for (int64_t i = 0; i < rows * keys; ++i)
      places.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(rows)));
    for (int64_t r = 0; r < rows; ++r) lengths.push_back(std::max<int64_t>(0, keys - r));
    query = numbers(rows * heads * depth);
    vector = numbers(depth);
    if (keys % 2 == 0) return;  // these have no bias
    bias = numbers(heads * bias_stride());
    for (int64_t r = 0; r < rows; ++r) bias_offsets.push_back(rows - r);
  }

  const float* key(int64_t row, int64_t j, int64_t head) const {
    return steps[static_cast<size_t>(j)].data() +
           places[static_cast<size_t>(row * keys + j)] * slot() +
           head / (heads / key_heads) * depth;
  }

  const float* value(int64_t row, int64_t j, int64_t head) const {
    return key(row, j, 0) + value_offset() + head / (heads / key_heads) * value_depth;
  }

  struct Result {
    std::vector<float> context, weights;
  };

  Result read(int64_t first, int64_t count, bool with_lengths) const {
    Result result{std::vector<float>(static_cast<size_t>(count * heads * value_depth)),
                  std::vector<float>(static_cast<size_t>(count * keys))};
    cached_attention({.rows = count,
                      .heads = heads,
                      .key_heads = key_heads,
                      .depth = depth,
                      .value_depth = value_depth,
                      .keys = keys,
                      .lengths = with_lengths ? lengths.data() + first : nullptr,
                      .scale = 0.4F,
                      .vector = additive ? vector.data() : nullptr,
                      .bias = bias.empty() ? nullptr : bias.data(),
                      .bias_stride = bias_stride(),
                      .bias_offsets = bias_offsets.data() + (bias.empty() ? 0 : first),
                      .query = query.data() + first * heads * depth,
                      .query_stride = heads * depth,
                      .type = type,
                      .slots = slots.data(),
                      .places = places.data() + first * keys,
                      .row_stride = keys,
                      .key_stride = 1,
                      .place_stride = slot(),
                      .value_offset = value_offset(),
                      .context = result.context.data(),
                      .context_stride = heads * value_depth,
                      .weights = result.weights.data()});
    return result;
  }

  // Weights of one row and head in double.
  std::vector<double> weights(int64_t row, int64_t head, int64_t length) const {
    std::vector<double> all(static_cast<size_t>(keys));
    double sum = 0;
    for (int64_t j = 0; j < length; ++j) {
      double score = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double q = query[static_cast<size_t>((row * heads + head) * depth + k)],
                     own = key(row, j, head)[k];
        score += additive ? vector[static_cast<size_t>(k)] * std::tanh(q + own) : q * own;
      }
      if (!bias.empty())
        score += bias[static_cast<size_t>(head * bias_stride() +
                                          bias_offsets[static_cast<size_t>(row)] + j)];
      sum += all[static_cast<size_t>(j)] = std::exp(0.4F * score);
    }
    for (double& each : all) each /= length == 0 ? 1 : sum;
    return all;
  }
};

std::vector<Caches> caches() {
  std::vector<Caches> all;
  // Includes more keys than are prefetched.
  for (const int64_t keys : {1, 2, 9, 33, 203})
    for (const auto& [heads, key_heads] : {std::pair<int64_t, int64_t>{1, 1}, {4, 4}, {4, 2}})
      for (const auto& [depth, value_depth] : {std::pair<int64_t, int64_t>{16, 16}, {48, 32}})
        for (const bool additive : {false, true})
          for (const CacheType type : {CacheType::float32, CacheType::bfloat16})
            all.push_back({5, heads, key_heads, depth, value_depth, keys, additive, type});
  for (Caches& each : all) each.draw();
  return all;
}

TEST(CachedAttention, IsThatOfTheSlots) {
  on_every_target([] {
    for (const Caches& c : caches()) {
      for (const bool with_lengths : {false, true}) {
        const Caches::Result got = c.read(0, c.rows, with_lengths);
        for (int64_t r = 0; r < c.rows; ++r) {
          std::vector<double> mean(static_cast<size_t>(c.keys));
          for (int64_t h = 0; h < c.heads; ++h) {
            const int64_t length = with_lengths ? c.lengths[static_cast<size_t>(r)] : c.keys;
            const std::vector<double> weights = c.weights(r, h, length);
            for (int64_t k = 0; k < c.value_depth; ++k) {
              double want = 0;
              for (int64_t j = 0; j < length; ++j)
                want += weights[static_cast<size_t>(j)] * c.value(r, j, h)[k];
              // Scores up to some tens have errors in their last place.
              ASSERT_NEAR(got.context[static_cast<size_t>((r * c.heads + h) * c.value_depth + k)],
                          want, 5e-5);
            }
            for (size_t j = 0; j < mean.size(); ++j)
              mean[j] += weights[j] / static_cast<double>(c.heads);
          }
          for (int64_t j = 0; j < c.keys; ++j)
            ASSERT_NEAR(got.weights[static_cast<size_t>(r * c.keys + j)],
                        mean[static_cast<size_t>(j)], 2e-5);
        }
      }
    }
  });
}

TEST(CachedAttention, OfARowIsTheSameInAnyCompany) {
  on_every_target([] {
    for (const Caches& c : caches()) {
      const Caches::Result all = c.read(0, c.rows, true);
      const int64_t width = c.heads * c.value_depth;
      for (int64_t r = 0; r < c.rows; ++r) {
        const Caches::Result alone = c.read(r, 1, true);
        for (int64_t k = 0; k < width; ++k)
          ASSERT_EQ(alone.context[static_cast<size_t>(k)],
                    all.context[static_cast<size_t>(r * width + k)]);
      }
    }
  });
}

TEST(CachedAttention, NotANumberSpreadsToWhoReadsIt) {
  on_every_target([] {
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
      for (const CacheType type : {CacheType::float32, CacheType::bfloat16}) {
        Caches c{2, 1, 1, 16, 16, 3, false, type};
        c.draw();
        c.places = {0, 0, 0, 1, 1, 1};
        // The value of key 2 of row 1.
        const int64_t index = c.slot() + c.value_offset() + 5;
        c.steps[2][static_cast<size_t>(index)] = value;
        if (type == CacheType::bfloat16)
          c.rounded[2][static_cast<size_t>(index)] = narrow<BFloat16>(value);
        const Caches::Result got = c.read(0, 2, false);
        for (int64_t k = 0; k < 32; ++k)
          ASSERT_EQ(std::isfinite(got.context[static_cast<size_t>(k)]), k != 21);
        ASSERT_EQ(std::isnan(got.context[21]), std::isnan(value));
      }
  });
}

// Every float becomes the nearest number of the type.
TEST(CachedRows, AreWhatTheTypeKeeps) {
  on_every_target([] {
    const int64_t rows = 3, columns = 48, from_stride = 50, to_stride = 64;
    std::mt19937_64 random(1);
    std::vector<float> from(static_cast<size_t>(rows * from_stride));
    for (float& each : from) each = std::bit_cast<float>(static_cast<uint32_t>(random()));
    // Ties, subnormal numbers, the largest ones, infinities, and NaNs that an addition would carry
    // over.
    const uint32_t special[] = {0x3f808000, 0x3f818000, 0x00000001, 0x807fffff, 0x7f7fffff,
                                0xff7f8000, 0x7f800000, 0xff800000, 0x7fffffff, 0xff800001};
    for (size_t i = 0; i < std::size(special); ++i) from[i] = std::bit_cast<float>(special[i]);
    std::vector<float> floats(static_cast<size_t>(rows * to_stride), 7);
    std::vector<BFloat16> bfloat16(floats.size(), BFloat16{7});
    CachedRows problem{.rows = rows,
                       .columns = columns,
                       .from = from.data(),
                       .from_stride = from_stride,
                       .to = floats.data(),
                       .to_stride = to_stride};
    cache_rows(problem);
    problem.type = CacheType::bfloat16;
    problem.to = bfloat16.data();
    cache_rows(problem);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < to_stride; ++k) {
        const auto index = static_cast<size_t>(r * to_stride + k);
        if (k >= columns) {
          ASSERT_EQ(floats[index], 7);
          ASSERT_EQ(bfloat16[index].bits, 7);
          continue;
        }
        const float want = from[static_cast<size_t>(r * from_stride + k)];
        ASSERT_EQ(std::bit_cast<uint32_t>(floats[index]), std::bit_cast<uint32_t>(want));
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(widen(bfloat16[index])));
        } else {
          ASSERT_EQ(bfloat16[index].bits, narrow<BFloat16>(want).bits) << want;
        }
      }
  });
}

}  // namespace cached_attention_test
}  // namespace attend::kernels::testing
