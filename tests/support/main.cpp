#include <gtest/gtest.h>

#include "tests/support/seed.h"

int main(int argc, char** argv) {
  attend::test::seed_properties();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
