#include "attend/base/hash.h"

#include <gtest/gtest.h>

namespace attend {
namespace hash_test {

// Published values.
TEST(Fnv1a, IsThatOfTheStandard) {
  const auto hash = [](std::string_view bytes) {
    Fnv1a hash;
    hash.add_bytes(bytes);
    return hash.value();
  };
  EXPECT_EQ(hash(""), 0xcbf29ce484222325);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8);
}

// First numbers of the published generator from state 0.
TEST(SplitMix, IsThatOfThePaper) {
  EXPECT_EQ(split_mix(split_mix_step), 0xe220a8397b1dcdaf);
  EXPECT_EQ(split_mix(2 * split_mix_step), 0x6e789e6aa1b965f4);
}

}  // namespace hash_test
}  // namespace attend
