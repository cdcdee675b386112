#pragma once

#include <span>

namespace attend {

// Kendall's tau-b of two rankings of the same things, -1 to 1; ties count for neither side. 0 where
// one of them ranks nothing: fewer than two things, or all equal. Error on different lengths.
double kendall_tau(std::span<const double> a, std::span<const double> b);

}  // namespace attend
