#include "attend/data/split.h"

#include <algorithm>
#include <cstdint>

#include "attend/base/hash.h"
#include "attend/text/units.h"

namespace attend {
namespace {

uint64_t hash_of(std::string_view source) {
  Fnv1a hash;
  hash.add_bytes(to_nfc(source));
  return hash.value();
}

// Part::valid begins here, in hundredths, and Part::test.
constexpr uint64_t valid_begin = 90, test_begin = 95;

// Orders sources by their hash; the sources of Part::valid come first.
uint64_t rank_of(uint64_t hash) {
  const uint64_t hundredth = (hash % 100 + 100 - valid_begin) % 100;
  return hundredth << 57U | hash >> 7U;
}

}  // namespace

Part part_of(std::string_view source) {
  const uint64_t hundredth = hash_of(source) % 100;
  return hundredth < valid_begin ? Part::train : hundredth < test_begin ? Part::valid : Part::test;
}

std::vector<bool> held_out(const std::vector<std::string>& keys) {
  constexpr size_t share = 20, enough = 6;
  std::vector<uint64_t> ranks;
  ranks.reserve(keys.size());
  for (const std::string& key : keys) ranks.push_back(rank_of(hash_of(key)));
  std::vector<uint64_t> sources = ranks;
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  std::vector<bool> held(keys.size());
  if (sources.size() < 2) return held;
  const auto by_hash = static_cast<size_t>(
      std::lower_bound(sources.begin(), sources.end(), (test_begin - valid_begin) << 57U) -
      sources.begin());
  const size_t least = std::min((sources.size() + share - 1) / share, enough);
  const uint64_t first_kept = sources[std::min(std::max(by_hash, least), sources.size() - 1)];
  for (size_t i = 0; i < keys.size(); ++i) held[i] = ranks[i] < first_kept;
  return held;
}

}  // namespace attend
