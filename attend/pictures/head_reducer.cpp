#include <algorithm>
#include <cmath>
#include <utility>

#include "attend/base/error.h"
#include "attend/pictures/map_page.h"
#include "attend/pictures/page_data-inl.h"

namespace attend {
namespace {

constexpr int64_t kWholeWeights = int64_t{4} << 20;
constexpr int64_t kOverviewCells = int64_t{32} * 512 * 512;
// Differences between columns take three bytes.
constexpr int64_t kMaximumColumns = (int64_t{1} << 24) - 1;

}  // namespace

PageDetail page_detail(int64_t maps, int64_t weights) {
  if (weights <= kWholeWeights) return {.kept = 0};
  PageDetail detail;
  if (maps > 32) {
    const double side = std::sqrt(static_cast<double>(kOverviewCells) / static_cast<double>(maps));
    detail.pooled = std::max<int64_t>(kPageThumbnail, static_cast<int64_t>(side));
  }
  return detail;
}

HeadReducer::HeadReducer(int64_t rows, int64_t columns, const PageDetail& detail)
    : whole_(detail.kept == 0 || columns <= detail.kept) {
  if (rows < 0 || columns < 0 || columns > kMaximumColumns || detail.kept < 0 || detail.pooled < 1)
    fail(
        "a page's map of {} x {} weights, {} a row and an overview of {}, cannot be: sizes are "
        "positive and columns at most {}",
        rows, columns, detail.kept, detail.pooled, kMaximumColumns);
  head_.rows = rows;
  head_.columns = columns;
  if (whole_) {
    head_.weights.reserve(static_cast<size_t>(rows * columns));
    return;
  }
  head_.kept = detail.kept;
  head_.kept_columns.reserve(static_cast<size_t>(rows * head_.kept));
  head_.kept_weights.reserve(static_cast<size_t>(rows * head_.kept));
  head_.pooled_rows = std::min(rows, detail.pooled);
  head_.pooled_columns = std::min(columns, detail.pooled);
  head_.pooled.assign(static_cast<size_t>(head_.pooled_rows * head_.pooled_columns), 0.0f);
  for (int64_t block = 0; block <= head_.pooled_columns; ++block)
    starts_.push_back((block * columns + head_.pooled_columns - 1) / head_.pooled_columns);
}

void HeadReducer::add(const float* weights, int64_t rows) {
  if (rows < 0 || next_ + rows > head_.rows)
    fail("{} rows after row {} of a page's map of {}: give each row once", rows, next_, head_.rows);
  if (whole_) {
    head_.weights.insert(head_.weights.end(), weights, weights + rows * head_.columns);
    next_ += rows;
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    reduce_row(weights + row * head_.columns);
    ++next_;
  }
}

void HeadReducer::reduce_row(const float* weights) {
  largest_.clear();
  float* const pooled =
      head_.pooled.data() + next_ * head_.pooled_rows / head_.rows * head_.pooled_columns;
  for (int64_t block = 0; block < head_.pooled_columns; ++block) {
    const int64_t first = starts_[static_cast<size_t>(block)];
    const int64_t last = starts_[static_cast<size_t>(block) + 1];
    // Most blocks change nothing. Their largest magnitude, found by vector instructions, shows
    // that.
    int32_t magnitude = 0;
    for (int64_t column = first; column < last; ++column)
      magnitude = std::max(magnitude, magnitude_of(weights[column]));
    if (magnitude > magnitude_of(pooled[block])) {
      pooled[block] = *std::find_if(weights + first, weights + last, [magnitude](float weight) {
        return magnitude_of(weight) == magnitude;
      });
    }
    const bool full = static_cast<int64_t>(largest_.size()) == head_.kept;
    if (!full || magnitude > largest_.back().magnitude) keep(weights, first, last);
  }
  std::sort(largest_.begin(), largest_.end(),
            [](const Kept& a, const Kept& b) { return a.column < b.column; });
  for (const Kept& kept : largest_) {
    head_.kept_columns.push_back(kept.column);
    head_.kept_weights.push_back(kept.weight);
  }
}

void HeadReducer::keep(const float* weights, int64_t first, int64_t last) {
  for (int64_t column = first; column < last; ++column) {
    const int32_t magnitude = magnitude_of(weights[column]);
    if (static_cast<int64_t>(largest_.size()) == head_.kept) {
      if (magnitude <= largest_.back().magnitude) continue;
      largest_.pop_back();
    }
    const auto place =
        std::find_if(largest_.begin(), largest_.end(),
                     [magnitude](const Kept& kept) { return kept.magnitude < magnitude; });
    largest_.insert(place, {magnitude, column, weights[column]});
  }
}

PageHead HeadReducer::finish() {
  if (next_ != head_.rows)
    fail("a page's map of {} rows was given {}: give each row once", head_.rows, next_);
  return std::move(head_);
}

}  // namespace attend
