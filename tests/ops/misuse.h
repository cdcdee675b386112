#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "attend/base/error.h"

namespace attend {

// A call and a part of its expected error message.
struct Misuse {
  std::function<void()> call;
  const char* message;
};

inline void expect_errors(const std::vector<Misuse>& misuses) {
  for (const Misuse& misuse : misuses) {
    try {
      misuse.call();
      ADD_FAILURE() << "accepted, expected: " << misuse.message;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(misuse.message));
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n")));
    }
  }
}

}  // namespace attend
