#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/decomposition-inl.h"

namespace attend::internal {
namespace {

// U+FDFA has the longest decomposition: 18 code points.
constexpr size_t longest_decomposition = 32;

}  // namespace

void Decomposition::clear() {
  points_.clear();
  classes_.clear();
}

void Decomposition::add(char32_t point) {
  if (is(point, untouched)) {
    points_.push_back(static_cast<int32_t>(point));
    classes_.push_back(0);
    return;
  }
  std::array<utf8proc_int32_t, longest_decomposition> parts;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible_ ? UTF8PROC_COMPAT : 0);
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(point), parts.data(), parts.size(),
                              static_cast<utf8proc_option_t>(options), nullptr);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const utf8proc_int32_t part = parts[static_cast<size_t>(i)];
    points_.push_back(part);
    classes_.push_back(static_cast<uint16_t>(utf8proc_get_property(part)->combining_class));
  }
}

const std::vector<int32_t>& Decomposition::ordered() {
  // Not by utf8proc, which sorts a run of marks by insertion, in quadratic time.
  std::vector<size_t> order;
  std::vector<int32_t> moved;
  for (size_t begin = 0; begin < points_.size();) {
    size_t end = begin;
    while (end < points_.size() && classes_[end] != 0) ++end;
    if (!std::is_sorted(classes_.begin() + static_cast<int64_t>(begin),
                        classes_.begin() + static_cast<int64_t>(end))) {
      order.resize(end - begin);
      std::iota(order.begin(), order.end(), begin);
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return classes_[a] < classes_[b]; });
      moved.clear();
      for (const size_t i : order) moved.push_back(points_[i]);
      std::copy(moved.begin(), moved.end(), points_.begin() + static_cast<int64_t>(begin));
      std::sort(classes_.begin() + static_cast<int64_t>(begin),
                classes_.begin() + static_cast<int64_t>(end));
    }
    begin = end + 1;
  }
  return points_;
}

}  // namespace attend::internal
