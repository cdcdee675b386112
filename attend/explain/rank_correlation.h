#pragma once

#include <optional>
#include <span>

namespace attend {

// Kendall's tau-b of two rankings of the same items, -1 to 1; ties count for neither side. Empty if
// one of them has fewer than two items, all equal, or a NaN. Error on different lengths.
// O(n log n).
std::optional<double> kendall_tau(std::span<const double> a, std::span<const double> b);

}  // namespace attend
