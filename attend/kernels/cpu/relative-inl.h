#if defined(ATTEND_KERNELS_RELATIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_RELATIVE_INL_H_
#undef ATTEND_KERNELS_RELATIVE_INL_H_
#else
#define ATTEND_KERNELS_RELATIVE_INL_H_
#endif

#include <algorithm>
#include <numeric>

#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The relative table of a problem on tiles [keys][width]. Without positions, the distance
// determines the column. With one row for all queries, a tile has one number per diagonal; these
// are written out once and read as vectors. With one row per query, pieces of rows are copied and
// transposed. With positions, numbers are looked up one by one, or in groups for consecutive
// positions.
template <class T>
class RelativeBias {
 public:
  RelativeBias(const Problem<T>& problem, int64_t width, Arena<T>& arena)
      : bias_(problem.bias),
        rows_(arena.take(kTileKeys * width + kTileKeys + width)),
        panel_(arena.take(kTileKeys * width)) {}

  // Adds the bias to scores, times `unit`.
  void add(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width, T unit,
           T* tile) const {
    if (has_positions()) {
      const T* table = bias_.relative.data;
      return each_place(
          first, rows, key, keys,
          [&](int64_t j, int64_t r, int64_t column) {
            tile[j * width + r] += unit * table[column];
          },
          [&](int64_t j, int64_t r, int64_t column) HWY_ATTR {
            const GroupTag d;
            T* to = tile + j * width + r;
            const auto bias = hn::Reverse(d, hn::LoadU(d, table + column));
            hn::Store(hn::MulAdd(bias, hn::Set(d, unit), hn::Load(d, to)), d, to);
          });
    }
    if (bias_.relative.row_stride == 0) return add_diagonals(first, key, keys, width, unit, tile);
    const Tag<T> d;
    for (int64_t r = 0; r < rows; ++r) {
      const T* table = bias_.relative.row(first.batch, first.head, first.query + r);
      const auto [begin, end] = unclamped(first.query + r, key, keys);
      T* row = rows_ + r * keys;
      std::fill_n(row, begin, table[0]);
      if (begin < end)
        std::copy_n(table + clamp(key + begin - first.query - r), end - begin, row + begin);
      std::fill(row + end, row + keys, table[bias_.relative_count - 1]);
    }
    LoadPanel(rows_, keys, rows, keys, panel_, width);
    for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
      hn::Store(hn::MulAdd(hn::Load(d, panel_ + i), Set<T>(unit), hn::Load(d, tile + i)), d,
                tile + i);
    }
  }

  // gradient += ds_ij at the column that each pair looked up.
  void differentiate(T* gradient, const Row& first, int64_t rows, int64_t key, int64_t keys,
                     int64_t width, const T* tile) const {
    if (has_positions()) {
      return each_place(
          first, rows, key, keys,
          [&](int64_t j, int64_t r, int64_t column) { gradient[column] += tile[j * width + r]; },
          [&](int64_t j, int64_t r, int64_t column) HWY_ATTR {
            const GroupTag d;
            const auto add = hn::Reverse(d, hn::Load(d, tile + j * width + r));
            hn::StoreU(hn::Add(hn::LoadU(d, gradient + column), add), d, gradient + column);
          });
    }
    if (bias_.relative.row_stride == 0)
      return differentiate_diagonals(place(gradient, first, 0), first, key, keys, width, tile);
    Transpose(tile, width, keys, rows, rows_, keys);
    for (int64_t r = 0; r < rows; ++r) {
      T* to = place(gradient, first, r);
      const auto [begin, end] = unclamped(first.query + r, key, keys);
      const T* row = rows_ + r * keys;
      to[0] += std::accumulate(row, row + begin, T(0));
      T* middle = begin < end ? to + clamp(key + begin - first.query - r) : to;
      for (int64_t j = begin; j < end; ++j) middle[j - begin] += row[j];
      to[bias_.relative_count - 1] += std::accumulate(row + end, row + keys, T(0));
    }
  }

 private:
  using GroupTag = hn::CappedTag<T, 4>;  // grids are rarely wider than a few groups
  static constexpr int64_t kGroup = hn::MaxLanes(GroupTag());

  bool has_positions() const {
    return bias_.query_positions != nullptr || bias_.key_positions != nullptr;
  }

  T* place(T* gradient, const Row& first, int64_t r) const {
    return gradient +
           (bias_.relative.row(first.batch, first.head, first.query + r) - bias_.relative.data);
  }

  int64_t clamp(int64_t distance) const {
    return std::clamp<int64_t>(distance + bias_.relative_offset, 0, bias_.relative_count - 1);
  }

  // Keys of the tile that are not clamped, counted from its first. Earlier keys use the first
  // column, later ones the last.
  KeyRange unclamped(int64_t query, int64_t key, int64_t keys) const {
    const int64_t before = query - key - bias_.relative_offset;
    const int64_t begin = std::clamp<int64_t>(before, 0, keys);
    return {begin, std::clamp(before + bias_.relative_count, begin, keys)};
  }

  void add_diagonals(const Row& first, int64_t key, int64_t keys, int64_t width, T unit,
                     T* tile) const {
    const Tag<T> d;
    const T* table = bias_.relative.row(first.batch, first.head, 0);
    for (int64_t n = 0; n < keys + width - 1; ++n)
      rows_[n] = unit * table[diagonal(first, key, keys, n)];
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        T* cell = tile + j * width + lane;
        hn::Store(hn::Add(hn::Load(d, cell), hn::LoadU(d, rows_ + keys - 1 - j + lane)), d, cell);
      }
    }
  }

  void differentiate_diagonals(T* to, const Row& first, int64_t key, int64_t keys, int64_t width,
                               const T* tile) const {
    const Tag<T> d;
    std::fill_n(rows_, keys + width, T(0));
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        T* cell = rows_ + keys - 1 - j + lane;
        hn::StoreU(hn::Add(hn::LoadU(d, cell), hn::Load(d, tile + j * width + lane)), d, cell);
      }
    }
    for (int64_t n = 0; n < keys + width - 1; ++n) to[diagonal(first, key, keys, n)] += rows_[n];
  }

  // Calls single(j, r, index in the table) for the pairs of the tile. If the positions of kGroup
  // queries are consecutive, as in the rows of a grid, calls group(j, r, index of the last) for the
  // queries from r on. Keys are visited kGroup apart: a number written for one is then read whole
  // for another, not in two pieces.
  template <class Single, class Group>
  void each_place(const Row& first, int64_t rows, int64_t key, int64_t keys, const Single& single,
                  const Group& group) const {
    const View<const T>& table = bias_.relative;
    const int64_t last = bias_.relative_count - 1, stride = table.row_stride;
    const int64_t start = table.row(first.batch, first.head, first.query) - table.data;
    int64_t position[kTileKeys], ahead[BlockScope::kMaxRows];
    for (int64_t j = 0; j < keys; ++j)
      position[j] = bias_.key_positions == nullptr ? key + j : bias_.key_positions[key + j];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t query = first.query + r;
      ahead[r] = bias_.relative_offset -
                 (bias_.query_positions == nullptr ? query : bias_.query_positions[query]);
    }
    const auto [least_at, max_at] = std::minmax_element(position, position + keys);
    const auto [least_ahead, max_ahead] = std::minmax_element(ahead, ahead + rows);
    const bool clamped = *least_at + *least_ahead < 0 || *max_at + *max_ahead > last;
    bool follow[BlockScope::kMaxRows] = {};
    for (int64_t r = 0; r + kGroup <= rows && stride == 0 && !clamped; r += kGroup)
      follow[r] = std::adjacent_find(ahead + r, ahead + r + kGroup, [](int64_t x, int64_t next) {
                    return next != x - 1;
                  }) == ahead + r + kGroup;
    for (int64_t phase = 0; phase < kGroup; ++phase) {
      for (int64_t j = phase; j < keys; j += kGroup) {
        for (int64_t r = 0; r < rows;) {
          if (follow[r]) {
            group(j, r, start + position[j] + ahead[r + kGroup - 1]);
            r += kGroup;
            continue;
          }
          single(j, r, start + r * stride + std::clamp<int64_t>(position[j] + ahead[r], 0, last));
          ++r;
        }
      }
    }
  }

  // Column of the pairs with i - j + keys - 1 = n, relative to the corner of the tile.
  int64_t diagonal(const Row& first, int64_t key, int64_t keys, int64_t n) const {
    return clamp(key + keys - 1 - first.query - n);
  }

  const Bias<T>& bias_;
  T* rows_;   // [rows][keys], or the diagonals
  T* panel_;  // [keys][width]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
