#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"

namespace attend::bench {

// Returns 20,000 pairs with the lengths of Multi30k, of random tokens below `tokens`. Measurements
// do not depend on their content.
std::vector<EncodedPair> sentences(int64_t tokens);

}  // namespace attend::bench
