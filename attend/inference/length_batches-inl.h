#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "attend/data/batches.h"

namespace attend {

// Divides the pairs `order` into batches of up to `size`, those with an earlier first pair first.
// The sources of a batch have one length, or lengths for all of which `may_pad` is true: those are
// what is left over of whole batches, neighbours in length, so that padding at most doubles the
// tokens.
std::vector<std::vector<int64_t>> length_batches(
    const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& order, size_t size,
    const std::function<bool(int64_t length)>& may_pad);

}  // namespace attend
