#pragma once

#include <cstdint>
#include <vector>

#include "attend/data/batches.h"

namespace attend {

// Divides the pairs `order` into batches of up to `size`, sorted by their first pair. The sources
// of a batch have equal length, or several lengths if `may_pad` is true. Such mixed batches
// hold the rest after full batches; neighbours in length are joined, and padding at most doubles
// the tokens.
std::vector<std::vector<int64_t>> length_batches(const std::vector<EncodedPair>& pairs,
                                                 const std::vector<int64_t>& order, size_t size,
                                                 bool may_pad);

}  // namespace attend
