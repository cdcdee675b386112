#include "attend/explain/alignment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/explain/grid-inl.h"
#include "attend/explain/visible_token-inl.h"

namespace attend {
namespace {

// A float widened to double would print digits that it never had.
double shortest(float value) {
  return std::isfinite(value) ? std::stod(fmt::format("{}", value)) : double{value};
}

}  // namespace

Grid checked_grid(const Alignment& alignment) {
  const auto rows = static_cast<int64_t>(alignment.target.size());
  const auto columns = static_cast<int64_t>(alignment.source.size());
  const at::Tensor& weights = alignment.weights;
  if (!weights.defined()) fail("[explain] the alignment has no weights; give [target, source]");
  if (!weights.is_floating_point()) {
    fail("[explain] weights have type {}; they must be floating point",
         c10::toString(weights.scalar_type()));
  }
  if (weights.dim() != 2 || weights.size(0) != rows || weights.size(1) != columns) {
    fail("[explain] weights have shape [{}]; {} target and {} source tokens need [{}, {}]",
         fmt::join(weights.sizes(), ", "), rows, columns, rows, columns);
  }
  const at::Tensor dense = weights.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* data = dense.data_ptr<double>();
  return {rows, columns, {data, data + rows * columns}, weights.scalar_type() != at::kDouble};
}

Grid checked_picture_grid(const Alignment& alignment) {
  const size_t limit = kMaximumPictureTokens;
  if (alignment.source.size() > limit || alignment.target.size() > limit) {
    fail(
        "[explain] {} source and {} target tokens are too many for a picture (at most {} each); "
        "explain a part of the text, or write .json for all weights",
        alignment.source.size(), alignment.target.size(), limit);
  }
  return checked_grid(alignment);
}

double scale_end(const Grid& grid) {
  double largest = 0;
  for (const double value : grid.values) {
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  // Softmax rows may pass 1 by rounding.
  if (largest <= 0 || (largest > 0.5 && largest <= 1 + 1e-3)) return 1;
  const double power = std::pow(10, std::floor(std::log10(largest)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (largest <= step * power) return step * power;
  }
  return 10 * power;
}

nlohmann::ordered_json to_json(const Grid& grid) {
  auto rows = nlohmann::ordered_json::array();
  for (int64_t row = 0; row < grid.rows; ++row) {
    auto values = nlohmann::ordered_json::array();
    for (int64_t column = 0; column < grid.columns; ++column) {
      const double value = grid.at(row, column);
      values.push_back(grid.single ? shortest(static_cast<float>(value)) : value);
    }
    rows.push_back(std::move(values));
  }
  return rows;
}

nlohmann::ordered_json to_json(const EvidenceFigure& figure) {
  nlohmann::ordered_json result{{"name", figure.name},
                                {"value", figure.value},
                                {"bar", figure.bar},
                                {"passed", figure.passed}};
  if (figure.missing.empty()) return result;
  result["value"] = result["passed"] = nullptr;
  result["missing"] = figure.missing;
  return result;
}

std::string dump(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string short_weight(double weight) {
  if (!std::isfinite(weight)) return std::isnan(weight) ? "nan" : weight > 0 ? "inf" : "-inf";
  const double size = std::abs(weight);
  if (size < 0.005) return "";
  const char* sign = weight < 0 ? "-" : "";
  if (size < 0.995) return fmt::format("{}.{:02d}", sign, std::lround(100 * size));
  if (size < 9.95) return fmt::format("{:.1f}", weight);
  return size < 999.5 ? fmt::format("{:.0f}", weight) : fmt::format("{}999+", sign);
}

std::string describe(const Alignment& alignment) {
  if (!alignment.title.empty()) return visible_text(alignment.title);
  return fmt::format("Attention of {} target tokens to {} source tokens", alignment.target.size(),
                     alignment.source.size());
}

std::string alignment_json(const Alignment& alignment,
                           const std::vector<EvidenceFigure>& evidence) {
  nlohmann::ordered_json document{{"title", alignment.title},
                                  {"source", alignment.source},
                                  {"target", alignment.target},
                                  {"weights", to_json(checked_grid(alignment))}};
  if (alignment.scores.defined())
    document["scores"] =
        to_json(checked_grid({alignment.source, alignment.target, alignment.scores}));
  for (const EvidenceFigure& figure : evidence) document["evidence"].push_back(to_json(figure));
  return dump(document);
}

}  // namespace attend
