#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace attend::test {

// Seed of all random draws in tests: environment variable ATTEND_SEED, or 1.
inline uint64_t seed() {
  const char* chosen = std::getenv("ATTEND_SEED");
  return chosen ? std::stoull(chosen) : 1;
}

// By default, RapidCheck takes a seed from the system.
inline void seed_properties() {
  setenv("RC_PARAMS", ("seed=" + std::to_string(seed())).c_str(), /*overwrite=*/0);
}

}  // namespace attend::test
