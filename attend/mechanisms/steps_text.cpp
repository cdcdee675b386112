#include "attend/mechanisms/steps_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace attend {
namespace {

using at::Tensor;

// Matrices longer than this show only `at_each_end` lines at each end.
constexpr int64_t longest = 8;
constexpr int64_t at_each_end = 3;

// The positions to show of `length`; -1 marks omitted ones.
std::vector<int64_t> shown_positions(int64_t length) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < length; ++i) {
    if (length <= longest || i < at_each_end || i >= length - at_each_end) positions.push_back(i);
    if (length > longest && i == at_each_end) positions.push_back(-1);
  }
  return positions;
}

bool needs_exponents(const Tensor& matrix) {
  const Tensor sizes = matrix.abs();
  const Tensor finite = sizes.masked_select(sizes.isfinite().logical_and(sizes > 0));
  if (finite.numel() == 0) return false;
  return finite.max().item<double>() >= 1e5 || finite.max().item<double>() < 1e-3;
}

std::string cell(double entry, bool exponents) {
  if (exponents) return fmt::format("{:.3e}", entry);
  // Values that round to 0 are shown without a sign.
  return fmt::format("{:.4f}", std::abs(entry) < 5e-5 ? 0.0 : entry);
}

std::vector<std::vector<std::string>> cells(const Tensor& matrix) {
  const bool exponents = needs_exponents(matrix);
  const auto entries = matrix.accessor<double, 2>();
  std::vector<std::vector<std::string>> rows;
  for (const int64_t i : shown_positions(matrix.size(0))) {
    std::vector<std::string>& row = rows.emplace_back();
    row.reserve(static_cast<size_t>(longest));
    for (const int64_t j : shown_positions(matrix.size(1)))
      row.push_back(i < 0 || j < 0 ? "..." : cell(entries[i][j], exponents));
  }
  return rows;
}

}  // namespace

std::string step(const std::string& name, const Tensor& tensor, const std::string& formula) {
  std::string text = fmt::format("{} [{}]{}{}\n", name, fmt::join(tensor.sizes(), ", "),
                                 formula.empty() ? "" : ": ", formula);
  const Tensor numbers = tensor.detach().to(at::kDouble);
  const auto rows = cells(numbers.dim() == 2 ? numbers : numbers.reshape({1, -1}));
  size_t width = 0;
  for (const auto& row : rows)
    for (const std::string& entry : row) width = std::max(width, entry.size());
  for (const auto& row : rows) {
    text += " ";
    for (const std::string& entry : row) text += fmt::format("  {:>{}}", entry, width);
    text += '\n';
  }
  if (tensor.numel() == 0) text += "  (empty)\n";
  return text + '\n';
}

}  // namespace attend
