#include "attend/data/split.h"

#include <cstdint>

#include "attend/base/hash.h"
#include "attend/text/units.h"

namespace attend {
Part part_of(std::string_view source) {
  Fnv1a hash;
  hash.add_bytes(to_nfc(source));
  const uint64_t hundredth = hash.value() % 100;
  return hundredth < 90 ? Part::train : hundredth < 95 ? Part::valid : Part::test;
}

}  // namespace attend
