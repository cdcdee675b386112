#include "attend/data/split.h"

#include <cstdint>
#include <string>

#include "attend/data/units.h"

namespace attend {
namespace {

uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Part part_of(std::string_view source) {
  const uint64_t hundredth = fnv1a(to_nfc(source)) % 100;
  return hundredth < 90 ? Part::train : hundredth < 95 ? Part::valid : Part::test;
}

}  // namespace attend
