#include "attend/kernels/weight_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace attend::kernels {
namespace {

// Blocks of a cache line to more than a chunk of huge pages.
constexpr int64_t sizes[] = {1, 64, 65'535, 65'536, 100'000, 3'000'000, 50'000'000, 70'000'000};

TEST(WeightMemory, IsZeroFromTheStartOfALineOn) {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::pair<WeightMemory, int64_t>> blocks;
    for (const int64_t size : sizes) {
      WeightMemory block(size);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block.data()) % 64, 0u) << size;
      ASSERT_TRUE(std::all_of(block.data(), block.data() + size, [](char c) { return c == 0; }));
      std::fill_n(block.data(), size, static_cast<char>(blocks.size() + 1));
      blocks.emplace_back(std::move(block), size);
    }
    // No block has changed another.
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto& [block, size] = blocks[i];
      ASSERT_EQ(std::count(block.data(), block.data() + size, static_cast<char>(i + 1)), size);
    }
  }
}

TEST(WeightMemory, OutlivesTheBlocksBesideIt) {
  WeightMemory kept;
  {
    const WeightMemory before(100'000);
    kept = WeightMemory(100'000);
    std::fill_n(kept.data(), 100'000, 'x');
  }
  const WeightMemory after(100'000);
  EXPECT_EQ(std::count(kept.data(), kept.data() + 100'000, 'x'), 100'000);
  EXPECT_EQ(std::count(after.data(), after.data() + 100'000, 0), 100'000);
}

TEST(WeightMemory, MayBeEmpty) {
  EXPECT_EQ(WeightMemory().data(), nullptr);
  EXPECT_NO_THROW(WeightMemory(0));
}

}  // namespace
}  // namespace attend::kernels
