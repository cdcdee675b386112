#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "attend/inference/length_batches-inl.h"

namespace attend {
namespace {

// A batch of sources that are added in order of their lengths.
class PaddedBatch {
 public:
  bool takes(int64_t length, size_t size) const {
    if (pairs_.empty()) return true;
    const int64_t padded = (std::ssize(pairs_) + 1) * length;
    return pairs_.size() < size && padded <= 2 * (tokens_ + length);
  }

  void add(int64_t pair, int64_t length) {
    pairs_.push_back(pair);
    tokens_ += length;
  }

  void move_to(std::vector<std::vector<int64_t>>& batches) {
    if (pairs_.empty()) return;
    std::sort(pairs_.begin(), pairs_.end());
    batches.push_back(std::exchange(pairs_, {}));
    tokens_ = 0;
  }

 private:
  std::vector<int64_t> pairs_;
  int64_t tokens_ = 0;
};

}  // namespace

std::vector<std::vector<int64_t>> length_batches(const std::vector<EncodedPair>& pairs,
                                                 const std::vector<int64_t>& order, size_t size,
                                                 bool may_pad) {
  std::map<int64_t, std::vector<int64_t>> by_length;
  for (const int64_t i : order)
    by_length[pairs[static_cast<size_t>(i)].source_length()].push_back(i);
  std::vector<std::vector<int64_t>> batches;
  PaddedBatch padded;
  for (const auto& [length, all] : by_length) {
    const size_t unpadded = may_pad ? all.size() / size * size : all.size();
    for (size_t first = 0; first < unpadded; first += size) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      const size_t count = std::min(size, unpadded - first);
      batches.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    for (size_t i = unpadded; i < all.size(); ++i) {
      if (!padded.takes(length, size)) padded.move_to(batches);
      padded.add(all[i], length);
    }
  }
  padded.move_to(batches);
  std::sort(batches.begin(), batches.end(),
            [](const auto& a, const auto& b) { return a.front() < b.front(); });
  return batches;
}

}  // namespace attend
