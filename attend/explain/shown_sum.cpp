#include "attend/explain/shown_sum.h"

#include <fmt/format.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/explain/weight_grids.h"

namespace attend {
namespace {

constexpr int64_t listed_summands = 10;

int64_t characters_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

}  // namespace

void add_largest(const at::Tensor& parts, const std::vector<std::string>& first,
                 const std::vector<std::string>& second, ShownSum& sum) {
  const at::Tensor flat = parts.flatten();
  const at::Tensor best = std::get<1>(flat.abs().topk(std::min(listed_summands, flat.numel())));
  sum.rest = flat.sum().item<double>();
  for (int64_t i = 0; i < best.numel(); ++i) {
    const auto place = best[i].item<int64_t>();
    const auto part = flat[place].item<double>();
    sum.largest.push_back({first[static_cast<size_t>(place / parts.size(1))],
                           second[static_cast<size_t>(place % parts.size(1))], part});
    sum.rest -= part;
  }
}

Alignment sum_map(const at::Tensor& parts, const std::vector<std::string>& rows,
                  const std::vector<std::string>& columns, const std::string& title) {
  const at::Tensor magnitudes = parts.abs();
  const double sum = magnitudes.sum().item<double>();
  return {columns, rows, grid_of((magnitudes / (sum > 0 ? sum : 1)).to(at::kFloat)), title,
          grid_of(parts)};
}

std::string sum_text(const ShownSum& sum) {
  int64_t width = 0;
  for (const Summand& one : sum.largest)
    width = std::max(width, characters_of(in_quotes(one.first)));
  std::string text = fmt::format("{} is the sum of\n", sum.title);
  for (const auto& [first, second, part] : sum.largest)
    text +=
        fmt::format("  {:>9.4f}  {:<{}}  {}\n", part, in_quotes(first), width, in_quotes(second));
  return text + fmt::format("  {:>9.4f}  all other pairs\n", sum.rest);
}

}  // namespace attend
