#include "attend/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace {

// Rows that read slots of common steps, as hypotheses do.
struct Caches {
  int64_t rows, heads, key_heads, depth, value_depth, keys;
  bool additive = false;
  std::vector<std::vector<float>> steps = {};  // a slot for each row in each
  std::vector<const float*> slots = {};
  std::vector<int32_t> places = {};
  std::vector<int64_t> lengths = {};
  std::vector<float> query = {}, vector = {};

  int64_t slot() const { return key_heads * (depth + value_depth); }

  void draw() {
    std::mt19937_64 random(static_cast<uint64_t>(rows * 131 + keys));
    std::normal_distribution<float> normal;
    const auto numbers = [&](int64_t count) {
      std::vector<float> all(static_cast<size_t>(count));
      for (float& each : all) each = normal(random);
      return all;
    };
    for (int64_t j = 0; j < keys; ++j) steps.push_back(numbers(rows * slot()));
    for (const auto& step : steps) slots.push_back(step.data());
    for (int64_t i = 0; i < rows * keys; ++i)
      places.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(rows)));
    for (int64_t r = 0; r < rows; ++r) lengths.push_back(std::max<int64_t>(0, keys - r));
    query = numbers(rows * heads * depth);
    vector = numbers(depth);
  }

  const float* key(int64_t row, int64_t j, int64_t head) const {
    return slots[static_cast<size_t>(j)] + places[static_cast<size_t>(row * keys + j)] * slot() +
           head / (heads / key_heads) * depth;
  }

  const float* value(int64_t row, int64_t j, int64_t head) const {
    return key(row, j, 0) + key_heads * depth + head / (heads / key_heads) * value_depth;
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
                      .query = query.data() + first * heads * depth,
                      .query_stride = heads * depth,
                      .slots = slots.data(),
                      .places = places.data() + first * keys,
                      .row_stride = keys,
                      .key_stride = 1,
                      .context = result.context.data(),
                      .context_stride = heads * value_depth,
                      .weights = result.weights.data()});
    return result;
  }

  // Of one row and head, in double.
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
      sum += all[static_cast<size_t>(j)] = std::exp(0.4F * score);
    }
    for (double& each : all) each /= length == 0 ? 1 : sum;
    return all;
  }
};

std::vector<Caches> caches() {
  std::vector<Caches> all;
  for (const int64_t keys : {1, 2, 9, 33})
    for (const auto& [heads, key_heads] : {std::pair<int64_t, int64_t>{1, 1}, {4, 4}, {4, 2}})
      for (const auto& [depth, value_depth] : {std::pair<int64_t, int64_t>{16, 16}, {48, 32}})
        for (const bool additive : {false, true})
          all.push_back({5, heads, key_heads, depth, value_depth, keys, additive});
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
              // Scores up to some tens round in their last place.
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

}  // namespace
}  // namespace attend::kernels::testing
