#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

namespace attend {

// Returns the minimum number of insertions, deletions and substitutions that turn one sequence into
// the other (Wagner & Fischer 1974). With `swaps`, swapping two neighbours also counts as one edit;
// an element is swapped at most once.
template <class Sequence>
int64_t edit_distance(const Sequence& a, const Sequence& b, bool swaps = false) {
  // Rows i, i - 1 and i - 2 of the table of distances.
  std::vector<int64_t> row(b.size() + 1), above(b.size() + 1), second_above;
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    second_above = std::exchange(above, std::exchange(row, std::move(second_above)));
    row.resize(b.size() + 1);
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({row[j - 1] + 1, above[j] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (swaps && i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], second_above[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace attend
