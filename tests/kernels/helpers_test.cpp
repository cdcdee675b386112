#include "attend/kernels/helpers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "attend/kernels/token_rows.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace helpers_test {

// Threads that only help.
class HelpingThreads {
 public:
  explicit HelpingThreads(int64_t count) : helpers_(count, [] {}) {
    for (int64_t i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        while (!ends_) helpers_.help([this] { return ends_.load(); });
      });
  }
  ~HelpingThreads() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  HelpingThreads(const HelpingThreads&) = delete;
  HelpingThreads& operator=(const HelpingThreads&) = delete;

  Helpers& helpers() { return helpers_; }

 private:
  std::atomic<bool> ends_ = false;
  Helpers helpers_;
  std::vector<std::thread> threads_;
};

TEST(Helpers, EachPartIsComputedOnce) {
  for (const int64_t count : {0, 1, 3}) {
    HelpingThreads threads(count);
    help_this_thread(&threads.helpers());
    EXPECT_EQ(is_helped(), count > 0);
    for (const int64_t parts : {0, 1, 2, 7, 300}) {
      std::vector<int> computed(static_cast<size_t>(parts));
      for (int round = 1; round <= 300; ++round) {
        share_parts(parts, [&](int64_t part) { ++computed[static_cast<size_t>(part)]; });
        ASSERT_EQ(computed, std::vector<int>(static_cast<size_t>(parts), round));
      }
    }
    help_this_thread(nullptr);
  }
}

TEST(Helpers, TakePartsFromTheLastOn) {
  HelpingThreads threads(1);
  help_this_thread(&threads.helpers());
  const std::thread::id caller = std::this_thread::get_id();
  constexpr size_t parts = 16;
  std::array<std::thread::id, parts> computed_by;
  // Repeats until the helper has joined in time to compute a part.
  do {
    share_parts(parts, [&](int64_t part) {
      computed_by[static_cast<size_t>(part)] = std::this_thread::get_id();
      std::this_thread::yield();
    });
    bool by_caller = true;
    for (const std::thread::id by : computed_by) {
      EXPECT_TRUE(by_caller || by != caller);
      by_caller = by == caller;
    }
  } while (computed_by.back() == caller);
  help_this_thread(nullptr);
}

TEST(Helpers, SayWhichPartTheThreadTakesNext) {
  HelpingThreads threads(1);
  help_this_thread(&threads.helpers());
  const std::thread::id caller = std::this_thread::get_id();
  std::array<int64_t, 16> steps = {};
  for (int round = 0; round < 100; ++round) {
    share_parts(std::ssize(steps), [&](int64_t part, int64_t next) {
      const bool by_caller = std::this_thread::get_id() == caller;
      steps[static_cast<size_t>(part)] = by_caller ? next - part : part - next;
    });
    for (const int64_t step : steps) EXPECT_EQ(step, 1);
  }
  help_this_thread(nullptr);
}

TEST(Helpers, SeveralThreadsShareWithTheSame) {
  HelpingThreads threads(2);
  std::array<int64_t, 3> sums = {};
  std::vector<std::thread> callers;
  for (size_t c = 0; c < sums.size(); ++c)
    callers.emplace_back([&, c] {
      help_this_thread(&threads.helpers());
      for (int round = 0; round < 200; ++round) {
        std::array<int64_t, 20> parts = {};
        share_parts(20, [&](int64_t part) { parts[static_cast<size_t>(part)] = part; });
        for (const int64_t each : parts) sums[c] += each;
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (const int64_t sum : sums) EXPECT_EQ(sum, 200 * 190);
}

TEST(Helpers, AreCalledWhileThereAreTooFew) {
  int64_t calls = 0;
  Helpers helpers(1, [&] { ++calls; });
  help_this_thread(&helpers);
  share_parts(1, [](int64_t) {});
  EXPECT_EQ(calls, 0);
  share_parts(2, [](int64_t) {});
  EXPECT_EQ(calls, 1);
  help_this_thread(nullptr);
}

struct Map {
  int64_t rows, columns, depth;
  WeightType type;
  std::vector<float> a = {}, weight = {}, bias = {};
  PackedMatrix matrix = {};

  void draw() {
    std::mt19937_64 random(static_cast<uint64_t>(rows * 1009 + columns));
    std::normal_distribution<float> normal;
    for (auto [to, count] :
         {std::pair{&a, rows * depth}, {&weight, columns * depth}, {&bias, columns}})
      for (int64_t i = 0; i < count; ++i) to->push_back(normal(random));
    matrix = {weight.data(), bias.data(), columns, depth, type};
  }

  std::vector<float> products() const {
    std::vector<float> out(static_cast<size_t>(rows * matrix.padded_columns()));
    packed_products({.rows = rows,
                     .matrix = &matrix,
                     .a = a.data(),
                     .a_stride = depth,
                     .relu = true,
                     .out = out.data(),
                     .out_stride = matrix.padded_columns()});
    return out;
  }

  // Returns the outputs of token_rows(), one after another.
  std::vector<float> found() const {
    const int64_t best = std::min<int64_t>(3, columns);
    std::vector<float> told(static_cast<size_t>(rows * best)),
        all(static_cast<size_t>(rows * columns));
    std::vector<int64_t> tokens(told.size()), given(static_cast<size_t>(rows), -1);
    given.back() = columns - 1;
    const int64_t excluded = columns / 2;
    token_rows({.rows = rows,
                .matrix = &matrix,
                .a = a.data(),
                .a_stride = depth,
                .best = best,
                .excluded = &excluded,
                .excluded_count = 1,
                .given = rows > 1 ? given.data() : nullptr,
                .log_probabilities = told.data(),
                .tokens = tokens.data(),
                .all = all.data()});
    for (const int64_t token : tokens) told.push_back(static_cast<float>(token));
    told.insert(told.end(), all.begin(), all.end());
    return told;
  }
};

// With a depth of 256 a panel of float32 is a part by itself.
std::vector<Map> maps() {
  std::vector<Map> all;
  for (const int64_t rows : {1, 2, 5, 8, 9, 70})
    for (const int64_t columns : {1, 3, 59, 111, 700})
      for (const WeightType type : {WeightType::float32, WeightType::bfloat16, WeightType::int8})
        all.push_back({rows, columns, 256, type});
  for (Map& each : all) each.draw();
  return all;
}

TEST(Helpers, ChangeNoBitOfProducts) {
  const std::vector<Map> all = maps();
  on_every_target([&] {
    std::vector<std::vector<float>> products, found;
    for (const Map& map : all) {
      products.push_back(map.products());
      found.push_back(map.found());
    }
    for (const int64_t count : {1, 2, 3}) {
      HelpingThreads threads(count);
      help_this_thread(&threads.helpers());
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i].products(), products[i]) << i;
        ASSERT_EQ(all[i].found(), found[i]) << i;
      }
      help_this_thread(nullptr);
    }
  });
}

}  // namespace helpers_test
}  // namespace attend::kernels::testing
