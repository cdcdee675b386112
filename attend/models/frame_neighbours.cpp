#include "attend/models/frame_neighbours.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "attend/ops/scopes.h"

namespace attend {

using at::Tensor;

Neighbours frame_neighbours(const Tensor& frames, const Tensor& lengths, int64_t maximum) {
  const int64_t batch = frames.size(0), places = frames.size(1);
  const Tensor listed = frames.narrow(2, frames.size(2) - 2 * maximum, 2 * maximum)
                            .to(at::kCPU, at::kLong)
                            .contiguous();
  const Tensor ends = lengths.cpu().contiguous();
  const auto* numbers = listed.data_ptr<int64_t>();
  std::vector<int64_t> offsets, keys;
  std::vector<Tensor> kinds;
  for (int64_t entry = 0; entry < batch; ++entry) {
    const int64_t length = ends.data_ptr<int64_t>()[entry];
    std::vector<int64_t> own_kinds;
    offsets.push_back(std::ssize(keys));
    for (int64_t place = 0; place < places; ++place, numbers += 2 * maximum) {
      std::vector<std::pair<int64_t, int64_t>> seen;
      if (place < length) seen.emplace_back(place, 0);
      for (int64_t n = 0; n < maximum && place < length; ++n) {
        const int64_t key = place + numbers[n], kind = numbers[maximum + n];
        if (kind > 0 && key >= 0 && key < length) seen.emplace_back(key, kind);
      }
      std::sort(seen.begin(), seen.end());  // edges() needs ascending keys in a list
      for (const auto& [key, kind] : seen) {
        keys.push_back(key);
        own_kinds.push_back(kind);
      }
      offsets.push_back(std::ssize(keys));
    }
    kinds.push_back(at::tensor(own_kinds, at::kLong));
  }
  return {edges(at::tensor(offsets, at::kLong).view({batch, 1, places + 1}),
                at::tensor(keys, at::kLong)),
          at::pad_sequence(kinds, /*batch_first=*/true).to(frames.device())};
}

}  // namespace attend
