#include "attend/inference/vector_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace attend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Values of sentence_transformers.util.quantization.quantize_embeddings (6.2).
TEST(VectorPrecision, EqualsSentenceTransformers) {
  const std::vector<std::vector<float>> rows = {
      {0.5F, -1, 0.25F, 3, -0.125F, 0, 1, -2, 0.75F, 7},
      {-0.5F, 2, 0.3F, -3, 0.875F, 0, -1, 2, 0.1F, 7},
      {0.1F, 0, -0.7F, 0.6F, 0.4F, 0, 0.9F, 0.2F, -0.3F, 7}};
  VectorRanges ranges;
  for (const auto& row : rows) ranges.add(row);
  EXPECT_THAT(quantised(rows[2], VectorPrecision::uint8, ranges),
              ElementsAre(153, 85, 0, 153, 133, 0, 242, 140, 0, 0));
  EXPECT_THAT(quantised(rows[2], VectorPrecision::int8, ranges),
              ElementsAre(25, -43, -128, 25, 5, -128, 114, 12, -128, -128));
  EXPECT_THAT(quantised(rows[0], VectorPrecision::ubinary), ElementsAre(178, 192));
  EXPECT_THAT(quantised(rows[0], VectorPrecision::binary), ElementsAre(50, 64));
}

TEST(VectorPrecision, ClampsNumbersOutsideOfTheRanges) {
  const VectorRanges ranges{.lowest = {0, 0}, .highest = {1, 1}};
  EXPECT_THAT(quantised({-5, 5}, VectorPrecision::int8, ranges), ElementsAre(-128, 127));
}

TEST(VectorPrecision, AVectorOfLengthOneNeedsNoRanges) {
  const std::vector<float> vector = {0.6F, -0.8F, 0, 0.0039F, -0.0039F, 0.00394F};
  EXPECT_THAT(quantised_unit(vector, VectorPrecision::int8), ElementsAre(76, -102, 0, 0, 0, 1));
  EXPECT_THAT(quantised_unit(vector, VectorPrecision::uint8),
              ElementsAre(204, 26, 128, 128, 128, 129));
  EXPECT_THAT(quantised_unit({-1.0000001F, 1}, VectorPrecision::int8), ElementsAre(-127, 127));
  EXPECT_EQ(quantised_unit(vector, VectorPrecision::binary),
            quantised(vector, VectorPrecision::binary));
  EXPECT_THAT(test::error_of([&] { (void)quantised_unit(vector, VectorPrecision::float32); }),
              HasSubstr("float32 is not quantised"));
}

TEST(VectorPrecision, ChecksLengths) {
  VectorRanges ranges;
  ranges.add({1, 2});
  EXPECT_THAT(test::error_of([&] { ranges.add({1}); }), HasSubstr("1 numbers, and the ranges 2"));
  EXPECT_THAT(test::error_of([&] { (void)quantised({1}, VectorPrecision::int8, ranges); }),
              HasSubstr("1 numbers, and the ranges 2"));
  EXPECT_THAT(test::error_of([&] { (void)quantised({1}, VectorPrecision::float32); }),
              HasSubstr("float32 is not quantised"));
}

}  // namespace
}  // namespace attend
