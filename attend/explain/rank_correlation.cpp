#include "attend/explain/rank_correlation.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {

std::optional<double> kendall_tau(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size())
    fail("[kendall_tau] {} and {} values; both rankings must be of the same things", a.size(),
         b.size());
  double agreement = 0, pairs_a = 0, pairs_b = 0;  // numbers of pairs without ties
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = i + 1; j < a.size(); ++j) {
      const int order_a = (a[i] > a[j]) - (a[i] < a[j]);
      const int order_b = (b[i] > b[j]) - (b[i] < b[j]);
      agreement += order_a * order_b;
      pairs_a += order_a * order_a;
      pairs_b += order_b * order_b;
    }
  }
  if (pairs_a == 0 || pairs_b == 0) return {};
  return agreement / std::sqrt(pairs_a * pairs_b);
}

}  // namespace attend
