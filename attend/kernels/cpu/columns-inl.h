#if defined(ATTEND_KERNELS_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_COLUMNS_INL_H_
#undef ATTEND_KERNELS_COLUMNS_INL_H_
#else
#define ATTEND_KERNELS_COLUMNS_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The bias of Bias::query_products and Bias::key_products on tiles [keys][width] of one block of
// rows. The distance determines the column, so a tile has one column per diagonal.
template <class T>
class ColumnBias {
 public:
  ColumnBias(const Problem<T>& problem, int64_t width, Arena<T>& arena)
      : problem_(problem),
        bias_(problem.bias),
        diagonals_(as_index(arena.take(kTileKeys + width))),
        rows_(as_index(arena.take(width))) {}

  // Adds the bias to scores, times `unit`.
  void add(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width, T unit,
           T* tile) {
    const Tag<T> d;
    const IndexTag di;
    load(first, rows, key, keys, width);
    const T* by_query = query_row(bias_.query_products, first);
    for (int64_t j = 0; j < keys; ++j) {
      const T* by_key = key_row(bias_.key_products, first, key + j);
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        const auto column = hn::LoadU(di, diagonals_ + keys - 1 - j + lane);
        T* cell = tile + j * width + lane;
        auto sum = hn::Load(d, cell);
        if (by_query != nullptr) {
          const auto place = hn::Add(column, hn::Load(di, rows_ + lane));
          sum = hn::MulAdd(hn::GatherIndex(d, by_query, place), Set<T>(unit), sum);
        }
        if (by_key != nullptr)
          sum = hn::MulAdd(hn::GatherIndex(d, by_key, column), Set<T>(unit), sum);
        hn::Store(sum, d, cell);
      }
    }
  }

  // tile[j][i] = ds_ij. The gradients have the shapes of the products; null: not computed.
  void differentiate(T* query_products, T* key_products, const Row& first, int64_t rows,
                     int64_t key, int64_t keys, int64_t width, const T* tile) {
    load(first, rows, key, keys, width);
    T* by_query = query_row(query_products, first);
    for (int64_t j = 0; j < keys; ++j) {
      T* by_key = key_row(key_products, first, key + j);
      const Index* column = diagonals_ + keys - 1 - j;
      const T* ds = tile + j * width;
      for (int64_t r = 0; by_query != nullptr && r < rows; ++r)
        by_query[r * bias_.product_columns + column[r]] += ds[r];
      for (int64_t r = 0; by_key != nullptr && r < rows; ++r) by_key[column[r]] += ds[r];
    }
  }

 private:
  using IndexTag = hn::RebindToSigned<Tag<T>>;
  using Index = hn::TFromD<IndexTag>;

  static Index* as_index(T* numbers) { return reinterpret_cast<Index*>(numbers); }

  template <class P>
  P* query_row(P* products, const Row& row) const {
    const Shape& s = problem_.shape;
    if (products == nullptr) return nullptr;
    return products +
           ((row.batch * s.heads + row.head) * s.queries + row.query) * bias_.product_columns;
  }
  template <class P>
  P* key_row(P* products, const Row& row, int64_t key) const {
    const Shape& s = problem_.shape;
    if (products == nullptr) return nullptr;
    return products + ((row.batch * s.heads + row.head) * s.keys + key) * bias_.product_columns;
  }

  // Loads the columns of the pairs with i - j + keys - 1 = n, relative to the corner of the tile,
  // and the beginning of each row; lanes after the last row repeat valid numbers.
  void load(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width) {
    const Shape& s = problem_.shape;
    const int32_t* columns = bias_.columns + first.batch * bias_.columns_stride;
    for (int64_t n = 0; n < keys + width - 1; ++n) {
      const int64_t place = key + keys - 1 - first.query - n + s.queries - 1;
      diagonals_[n] = columns[std::max<int64_t>(place, 0)];
    }
    for (int64_t r = 0; r < width; ++r)
      rows_[r] = static_cast<Index>(std::min(r, rows - 1) * bias_.product_columns);
  }

  const Problem<T>& problem_;
  const Bias<T>& bias_;
  Index* diagonals_;  // [keys + width - 1]
  Index* rows_;       // [width]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
