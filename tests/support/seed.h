#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace attend::test {

// What tests draw at random follows from it: environment variable ATTEND_SEED, or 1.
inline uint64_t seed() {
  const char* chosen = std::getenv("ATTEND_SEED");
  return chosen ? std::stoull(chosen) : 1;
}

// RapidCheck would take a seed from the system.
inline void seed_properties() {
  setenv("RC_PARAMS", ("seed=" + std::to_string(seed())).c_str(), /*overwrite=*/0);
}

}  // namespace attend::test
