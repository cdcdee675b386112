#include "attend/datasets/recall.h"

#include <numeric>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/random.h"
#include "attend/datasets/new_files.h"

namespace attend {
namespace {

void check(const Recall& recall) {
  if (recall.count < 1 || recall.pairs < 1 || recall.queries < 1 || recall.vocabulary < 1)
    fail("[recall] {} lines of {} pairs, {} queries and {} keys; each of these is 1 or more",
         recall.count, recall.pairs, recall.queries, recall.vocabulary);
  if (recall.least_pairs < 0 || recall.least_pairs > recall.pairs)
    fail("[recall] the minimum of {} pairs is not between 0 and the maximum, {}",
         recall.least_pairs, recall.pairs);
  if (recall.pairs > recall.vocabulary)
    fail("[recall] {} pairs need different keys, and there are {}; take fewer pairs or more keys",
         recall.pairs, recall.vocabulary);
  constexpr int64_t max_pairs = 100'000'000;
  if (recall.count > max_pairs / (recall.pairs + recall.queries))
    fail("[recall] {} lines of {} pairs and {} queries have over {}; ask for fewer", recall.count,
         recall.pairs, recall.queries, max_pairs);
}

}  // namespace

void write_recall(const std::string& path, const Recall& recall) {
  check(recall);
  std::mt19937_64 random = internal::generator(static_cast<uint64_t>(recall.seed), 0);
  const auto draw_below = [&](int64_t count) {
    return static_cast<size_t>(internal::draw_below(static_cast<uint64_t>(count), random));
  };
  const int64_t least = recall.least_pairs == 0 ? recall.pairs : recall.least_pairs;
  std::vector<size_t> keys(static_cast<size_t>(recall.vocabulary));
  std::iota(keys.begin(), keys.end(), size_t{0});
  std::vector<size_t> values(static_cast<size_t>(recall.pairs));
  std::string text;
  for (int64_t line = 0; line < recall.count; ++line) {
    const size_t pairs = static_cast<size_t>(least) + draw_below(recall.pairs - least + 1);
    for (size_t i = 0; i < pairs; ++i) {
      std::swap(keys[i], keys[i + draw_below(recall.vocabulary - static_cast<int64_t>(i))]);
      values[i] = draw_below(recall.vocabulary);
      text += fmt::format("k{} v{} ", keys[i], values[i]);
    }
    for (int64_t query = 0; query < recall.queries; ++query) {
      const size_t i = draw_below(static_cast<int64_t>(pairs));
      text += query == 0 ? fmt::format("k{}\tv{}", keys[i], values[i])
                         : fmt::format(" k{} v{}", keys[i], values[i]);
    }
    text += '\n';
  }
  write_new_files({{path, text}});
}

}  // namespace attend
