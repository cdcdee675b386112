#include "attend/decode/packed_positions.h"

#include <gtest/gtest.h>

#include "attend/nn/positions.h"

namespace attend {
namespace packed_positions_test {

using at::Tensor;

PackedBias made(const std::string& bias, double scale) {
  torch::manual_seed(3);
  const AttentionChoices choices{.scope = "causal", .bias = bias};
  LearnedAttention attention(choices, {.query_depth = 8, .key_depth = 8, .attention_depth = 8}, 2);
  const torch::NoGradGuard no_gradient;
  torch::OrderedDict<std::string, Tensor> all;
  for (auto& item : attention.named_parameters()) {
    item.value().add_(torch::rand_like(item.value()));
    all.insert("layer." + item.key(), item.value());
  }
  return {choices, 2, 8, scale, all, "layer."};
}

TEST(PackedBias, IsAlibiByDistance) {
  torch::manual_seed(3);
  const AttentionChoices choices{.scope = "causal", .bias = "alibi"};
  const LearnedAttention attention(choices,
                                   {.query_depth = 8, .key_depth = 8, .attention_depth = 8}, 2);
  const PackedBias bias(choices, 2, 8, 0.25, attention.named_parameters(), "");
  const Tensor slopes = attention.named_parameters()["alibi_slopes"].detach();
  for (const int64_t room : {1, 4, 256, 300}) {
    const Tensor distance = (at::arange(2 * room - 1) - room + 1).abs();
    EXPECT_TRUE(at::allclose(bias.table(room), -slopes.view({2, 1}) * distance / 0.25)) << room;
  }
}

TEST(PackedBias, HasTheSameNumbersInTablesOfAnyRoom) {
  for (const char* text :
       {"buckets:8", "kerple_log", "kerple_power", "sandwich:8", "alibi + buckets:4"}) {
    const PackedBias bias = made(text, 0.5);
    const Tensor large = bias.table(300), small = bias.table(20);
    EXPECT_TRUE(at::allclose(large.narrow(1, 280, 39), small, 1e-5, 1e-6)) << text;
    EXPECT_GT(small.std().item<double>(), 0) << text;
  }
}

TEST(PackedBias, TakesDistancesOnly) {
  for (const char* text : {"", "alibi", "buckets:32", "kerple_log + sandwich:4"})
    EXPECT_TRUE(PackedBias::takes(text)) << text;
  for (const char* text : {"sink", "alibi + sink", "forget", "cope:4", "fire:8", "relative_keys:2"})
    EXPECT_FALSE(PackedBias::takes(text)) << text;
  EXPECT_TRUE(PackedBias().empty());
}

TEST(PackedRotation, IsTheRotationOfPositions) {
  const std::vector<int64_t> positions = {0, 1, 7, 500};
  for (const RotaryPairs pairs : {RotaryPairs::adjacent, RotaryPairs::halves})
    for (const double share : {1.0, 0.5})
      for (const char* scaling : {"none", "yarn:4,8", "llama3:8,16"}) {
        const Rotation rotation{
            .share = share, .pairs = pairs, .scaling = parse_rotary_scaling(scaling)};
        // Heads of 8 numbers, padded to 16, in rows with two heads.
        const Tensor given = torch::randn({4, 2, 8});
        Tensor rows = at::constant_pad_nd(given, {0, 8}).contiguous();
        const PackedRotation packed(rotation, 8);
        std::vector<float> turns;
        packed.turns(positions, turns);
        packed.rotate({4, 2, 16, 32, rows.data_ptr<float>()}, turns);
        for (size_t r = 0; r < positions.size(); ++r) {
          const Tensor expected =
              rotate(given[static_cast<int64_t>(r)].unsqueeze(1), positions[r], rotation)
                  .squeeze(1);
          const Tensor row = rows[static_cast<int64_t>(r)];
          EXPECT_TRUE(at::allclose(row.narrow(1, 0, 8), expected, 1e-5, 1e-6)) << scaling;
          EXPECT_EQ(row.narrow(1, 8, 8).abs().max().item<float>(), 0);
        }
      }
}

}  // namespace packed_positions_test
}  // namespace attend
