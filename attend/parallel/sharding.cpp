#include "attend/parallel/sharding.h"

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// Piece n of `pieces` pieces of nearly equal length.
Run piece_of(int64_t length, int64_t pieces, int64_t n) {
  const int64_t first = length * n / pieces;
  return {first, length * (n + 1) / pieces - first};
}

void check_sizes(int64_t length, int64_t ranks) {
  if (length < 0 || ranks < 1)
    fail("[sharding] got {} positions for {} ranks; they must be 0 or more and 1 or more", length,
         ranks);
}

}  // namespace

Sharding contiguous_sharding(int64_t length, int64_t ranks) {
  check_sizes(length, ranks);
  Sharding sharding;
  for (int64_t r = 0; r < ranks; ++r) sharding.push_back({piece_of(length, ranks, r)});
  return sharding;
}

Sharding zigzag_sharding(int64_t length, int64_t ranks) {
  check_sizes(length, ranks);
  Sharding sharding;
  for (int64_t r = 0; r < ranks; ++r)
    sharding.push_back(
        {piece_of(length, 2 * ranks, r), piece_of(length, 2 * ranks, 2 * ranks - 1 - r)});
  return sharding;
}

int64_t length_of(const Runs& runs) {
  int64_t length = 0;
  for (const Run& run : runs) length += run.count;
  return length;
}

int64_t length_of(const Sharding& sharding) {
  int64_t length = 0;
  for (const Runs& runs : sharding) length += length_of(runs);
  return length;
}

Sharding mirrored(const Sharding& sharding) {
  const int64_t length = length_of(sharding);
  Sharding turned = sharding;
  for (Runs& runs : turned) {
    std::reverse(runs.begin(), runs.end());
    for (Run& run : runs) run.first = length - run.first - run.count;
  }
  return turned;
}

void check_sharding(const Sharding& sharding, int64_t ranks, const char* name) {
  if (static_cast<int64_t>(sharding.size()) != ranks)
    fail("[sharding] {} are spread over {} ranks; there are {}", name, sharding.size(), ranks);
  Runs all;
  for (const Runs& runs : sharding) all.insert(all.end(), runs.begin(), runs.end());
  for (const Run& run : all)
    if (run.count < 0)
      fail("[sharding] {} have a run of {} positions; it must be 0 or more", name, run.count);
  std::erase_if(all, [](const Run& run) { return run.count == 0; });
  std::sort(all.begin(), all.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  int64_t next = 0;
  for (const Run& run : all) {
    if (run.first != next)
      fail(
          "[sharding] {} have a run from position {} on, and {} is the next position; each "
          "position must have one rank",
          name, run.first, next);
    next += run.count;
  }
}

Tensor at_runs(const Tensor& whole, const Runs& runs, int64_t axis) {
  std::vector<Tensor> pieces = {whole.narrow(axis, 0, 0)};
  for (const Run& run : runs) pieces.push_back(whole.narrow(axis, run.first, run.count));
  return pieces.size() == 2 ? pieces[1] : at::cat(pieces, axis);
}

Tensor joined(const std::vector<Tensor>& of_ranks, const Sharding& sharding, int64_t axis) {
  std::vector<std::pair<int64_t, Tensor>> pieces = {{-1, of_ranks[0].narrow(axis, 0, 0)}};
  for (size_t r = 0; r < of_ranks.size(); ++r) {
    int64_t begin = 0;
    for (const Run& run : sharding[r]) {
      if (run.count > 0) pieces.emplace_back(run.first, of_ranks[r].narrow(axis, begin, run.count));
      begin += run.count;
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Tensor> in_order;
  in_order.reserve(pieces.size());
  for (const auto& [first, piece] : pieces) in_order.push_back(piece);
  return at::cat(in_order, axis);
}

}  // namespace attend
