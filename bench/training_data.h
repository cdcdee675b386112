#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"

namespace attend::bench {

// 20,000 pairs as long as Multi30k's, of random tokens below `tokens`: what is measured does not
// depend on what they say.
std::vector<EncodedPair> sentences(int64_t tokens);

}  // namespace attend::bench
