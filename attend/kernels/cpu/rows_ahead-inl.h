#pragma once

#include <algorithm>
#include <cstdint>

namespace attend::kernels {

// Rows that are read or written soon. Products prefetch them into the second-level cache, a few
// lines per step. Many at once would fill the processor's queue of pending loads and delay the
// product.
class RowsAhead {
 public:
  // Discards rows that are not fetched yet.
  void restart() { count_ = next_ = line_ = lines_ = 0; }

  // At most kMost calls after a restart. Null pointers are ignored.
  template <class T>
  void add(const T* from, int64_t stride, int64_t rows, int64_t columns) {
    if (from == nullptr || rows <= 0 || columns <= 0) return;
    const int64_t size = sizeof(T);
    const bool whole = stride == columns;
    const int64_t bytes = (whole ? rows : 1) * columns * size;
    blocks_[count_++] = {reinterpret_cast<const char*>(from), stride * size, whole ? 1 : rows,
                         (bytes + kLine - 1) / kLine};
    lines_ += blocks_[count_ - 1].rows * blocks_[count_ - 1].lines;
  }

  // Sets the number of product steps that share the fetches.
  void divide(int64_t steps) { pace_ = lines_ / std::max<int64_t>(1, steps) + 1; }

  void fetch_some() { fetch(pace_); }
  void fetch_all() { fetch(lines_); }

  static constexpr int64_t kMost = 8;

 private:
  static constexpr int64_t kLine = 64;

  struct Rows {
    const char* data;
    int64_t stride, rows, lines;  // lines: per row
  };

  void fetch(int64_t lines) {
    while (lines > 0 && next_ < count_) {
      Rows& block = blocks_[next_];
      const int64_t count = std::min(lines, block.lines - line_);
      const char* const from = block.data + line_ * kLine;
      for (int64_t i = 0; i < count; ++i)
        __builtin_prefetch(from + i * kLine, /*rw=*/0, /*locality=*/2);
      lines -= count;
      line_ += count;
      if (line_ < block.lines) return;
      line_ = 0;
      block.data += block.stride;
      if (--block.rows == 0) ++next_;
    }
  }

  Rows blocks_[kMost];
  int64_t count_ = 0, next_ = 0, line_ = 0, lines_ = 0, pace_ = 0;
};

// Memory in one piece that is read soon. Products that read a panel of weights for a few rows only
// take about as long as its memory: they prefetch the next panel evenly, with each step. A burst
// would fill the processor's queue of pending loads.
class MemoryAhead {
 public:
  MemoryAhead(const char* begin, int64_t bytes) : next_(begin), bytes_(bytes) {}

  // Sets the number of steps that share the fetches.
  void divide(int64_t steps) { pace_ = (bytes_ + steps - 1) / std::max<int64_t>(1, steps); }

  // Bytes of a step.
  int64_t pace() const { return pace_; }
  // First byte of the next `steps` steps. Some bytes after the memory may belong to them.
  const char* take(int64_t steps) {
    const char* const from = next_;
    next_ += steps * pace_;
    return from;
  }

  void fetch_some() {
    const char* const from = take(1);
    constexpr int64_t line = 64;
    for (int64_t i = 0; i < pace_; i += line)
      __builtin_prefetch(from + i, /*rw=*/0, /*locality=*/2);
  }

 private:
  const char* next_;
  int64_t bytes_, pace_ = 0;
};

}  // namespace attend::kernels
