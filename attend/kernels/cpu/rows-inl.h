#if defined(ATTEND_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ROWS_INL_H_
#undef ATTEND_KERNELS_ROWS_INL_H_
#else
#define ATTEND_KERNELS_ROWS_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Few queries, as in decoding: each key and value is read once and memory is the limit. Vectors run
// along the depth. 16-bit rows are widened as they are read.

template <class T>
struct PlainRow {
  const T* data;
  HWY_INLINE Vec<T> load(int64_t a) const { return hn::LoadU(Tag<T>(), data + a); }
  HWY_INLINE T at(int64_t a) const { return data[a]; }
};

struct BFloat16Row {
  const uint16_t* data;
  HWY_INLINE Vec<float> load(int64_t a) const {
    return Load(reinterpret_cast<const BFloat16*>(data + a));
  }
  HWY_INLINE float at(int64_t a) const { return widen(BFloat16{data[a]}); }
};

struct HalfRow {
  const uint16_t* data;
  HWY_INLINE Vec<float> load(int64_t a) const {
    const hn::Rebind<uint16_t, Tag<float>> bits;
    const hn::Rebind<hwy::float16_t, Tag<float>> half;
    return hn::PromoteTo(Tag<float>(), hn::BitCast(half, hn::LoadU(bits, data + a)));
  }
  HWY_INLINE float at(int64_t a) const { return widen(Float16{data[a]}); }
};

// Calls body with a function that returns the row of an index as one of the types above.
template <class T, class Body>
HWY_INLINE void WithRows(const T* plain, const uint16_t* half, bool bfloat16, int64_t stride,
                         const Body& body) {
  if constexpr (std::is_same_v<T, float>) {
    if (half != nullptr && bfloat16)
      return body([=](int64_t j) HWY_ATTR { return BFloat16Row{half + j * stride}; });
    if (half != nullptr)
      return body([=](int64_t j) HWY_ATTR { return HalfRow{half + j * stride}; });
  }
  body([=](int64_t j) HWY_ATTR { return PlainRow<T>{plain + j * stride}; });
}

template <class T>
int64_t KeyOffset(const Problem<T>& problem, const View<const T>& view, const Row& first,
                  int64_t first_key) {
  return first.batch * view.batch_stride + KeyHead(problem.shape, first.head) * view.head_stride +
         first_key * view.row_stride;
}

// Rows of keys or values in memory.
struct MemoryRows {
  const char* data = nullptr;  // null: none
  int64_t stride = 0, bytes = 0, rows = 0;

  constexpr MemoryRows() = default;
  // Keys [first_key, first_key + keys) of `view`, or of its 16-bit numbers at `half`.
  template <class T>
  MemoryRows(const Problem<T>& problem, const View<const T>& view, const uint16_t* half,
             const Row& first, int64_t first_key, int64_t keys, int64_t depth) {
    const int64_t size = half == nullptr ? sizeof(T) : 2;
    data = half == nullptr ? reinterpret_cast<const char*>(view.data)
                           : reinterpret_cast<const char*>(half);
    if (data == nullptr) return;
    data += KeyOffset(problem, view, first, first_key) * size;
    stride = view.row_stride * size;
    bytes = depth * size;
    rows = keys;
  }

  HWY_INLINE void fetch(int64_t row) const {
    for (int64_t b = 0; b < bytes; b += 64)
      __builtin_prefetch(data + row * stride + b, /*rw=*/0, /*locality=*/3);
  }
};

// Prefetch distance for keys and values of few queries. The hardware does not prefetch across
// pages, and starts late on each page.
inline constexpr int64_t kFetchedBytes = 12288;

// Fetches one row per row read. Fetching many at once would block each other and the reads of the
// product.
class RowFetch {
 public:
  constexpr RowFetch() = default;
  // `now`: rows that a product reads; `next`: rows that are read afterwards.
  RowFetch(const MemoryRows& now, const MemoryRows& next)
      : now_(now),
        next_(next),
        ahead_(now.bytes == 0 ? 0 : std::min(kFetchedBytes / now.bytes, now.rows)) {}

  HWY_INLINE void beside(int64_t row) const {
    const int64_t next = row + ahead_;
    if (next < now_.rows)
      now_.fetch(next);
    else if (next - now_.rows < next_.rows)
      next_.fetch(next - now_.rows);
  }

 private:
  MemoryRows now_, next_;
  int64_t ahead_ = 0;
};

inline constexpr RowFetch kNoFetch;

// Sums the lanes of four vectors to four numbers.
#if HWY_TARGET != HWY_SCALAR
template <class D, class V>
HWY_INLINE auto FoldToBlock(D d, V v) {
  if constexpr (hn::MaxLanes(d) * sizeof(hn::TFromD<D>) <= 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldToBlock(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

template <class D, class V>
HWY_INLINE V AddInterleaved(D d, V a, V b) {
  return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}

HWY_INLINE void SumFour(const Vec<float>* sum, float* to) {
  const Tag<float> all;
  const hn::Repartition<double, Tag<float>> wide;
  const auto low = hn::BitCast(wide, AddInterleaved(all, sum[0], sum[1]));
  const auto high = hn::BitCast(wide, AddInterleaved(all, sum[2], sum[3]));
  const auto each = hn::Add(hn::BitCast(all, hn::InterleaveLower(wide, low, high)),
                            hn::BitCast(all, hn::InterleaveUpper(wide, low, high)));
  hn::StoreU(FoldToBlock(all, each), hn::FixedTag<float, 4>(), to);
}

HWY_INLINE void SumFour(const Vec<double>* sum, double* to) {
  const hn::FixedTag<double, 2> d;
  const Tag<double> all;
  hn::StoreU(FoldToBlock(all, AddInterleaved(all, sum[0], sum[1])), d, to);
  hn::StoreU(FoldToBlock(all, AddInterleaved(all, sum[2], sum[3])), d, to + 2);
}
#else
template <class V, class T>
void SumFour(const V* sum, T* to) {
  for (int n = 0; n < 4; ++n) to[n] = hn::GetLane(sum[n]);
}
#endif

template <class T>
class DotRowScores : public TileScores<T> {
 public:
  DotRowScores(const Problem<T>& problem, const HalfKeys& half) : problem_(problem), half_(half) {}

  int64_t panel_size(int64_t width) const override { return problem_.shape.depth * width; }

  // Loads rows [rows][depth], scaled.
  void load_queries(const Row& first, int64_t rows, int64_t, T* panel) const override {
    const int64_t depth = problem_.shape.depth;
    LoadRows(problem_.query.row(first.batch, first.head, first.query), problem_.query.row_stride,
             rows, depth, rows, panel, depth);
    const T scale = T(problem_.score.scale * score_unit(problem_.normaliser));
    for (int64_t i = 0; i < rows * depth; ++i) panel[i] *= scale;
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const override {
    const int64_t depth = problem_.shape.depth;
    // A panel holds at most `width` queries.
    const int64_t rows = std::min(width, problem_.shape.queries - first.query);
    const int64_t offset = KeyOffset(problem_, problem_.key, first, first_key);
    const uint16_t* half = half_.key == nullptr ? nullptr : half_.key + offset;
    const T* plain = half == nullptr ? problem_.key.data + offset : nullptr;
    const MemoryRows now(problem_, problem_.key, half_.key, first, first_key, keys, depth);
    const MemoryRows values(problem_, problem_.value, half_.value, first, first_key, keys,
                            problem_.shape.value_depth);
    const RowFetch fetch(now, half_.reads_values ? values : MemoryRows());
    std::fill_n(tile, keys * width, T(0));
    WithRows(plain, half, half_.bfloat16, problem_.key.row_stride, [&](auto row) HWY_ATTR {
      for (int64_t j = 0; j < keys; j += 4) {
        const int64_t count = std::min<int64_t>(4, keys - j);
        for (int64_t i = 0; i < rows; ++i)
          DotFour(panel + i * depth, row, i == 0 ? fetch : kNoFetch, j, count, depth, width,
                  tile + j * width + i);
      }
    });
  }

 private:
  // Scores the first `count` of four keys. All sums use the same order; equal keys therefore have
  // equal scores.
  template <class KeyRow>
  static HWY_INLINE void DotFour(const T* query, const KeyRow& row, const RowFetch& fetch,
                                 int64_t first, int64_t count, int64_t depth, int64_t width,
                                 T* to) {
    const Tag<T> d;
    const int64_t last = first + count - 1;
    const decltype(row(0)) keys[4] = {row(first), row(std::min(first + 1, last)),
                                      row(std::min(first + 2, last)), row(last)};
    Vec<T> sum[4];
    for (auto& s : sum) s = hn::Zero(d);
    const int64_t a = depth / kLanes<T> * kLanes<T>;
    // Row by row, in memory order, which the hardware prefetches.
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) {
      fetch.beside(first + n);
      for (int64_t lane = 0; lane < a; lane += kLanes<T>) {
        sum[n] = hn::MulAdd(hn::LoadU(d, query + lane), keys[n].load(lane), sum[n]);
      }
    }
    T totals[4];
    SumFour(sum, totals);
    for (int64_t n = 0; n < count; ++n) {
      for (int64_t lane = a; lane < depth; ++lane) totals[n] += query[lane] * keys[n].at(lane);
      to[n * width] = totals[n];
    }
  }

  const Problem<T>& problem_;
  HalfKeys half_;
};

// context[e][i] += sum_j p_ij v_je for kVectors vectors of dimensions from e on.
template <int kVectors, class T, class ValueRow>
HWY_INLINE void AddValueVectors(const ValueRow& row, const RowFetch& fetch, const T* tile,
                                int64_t keys, int64_t width, int64_t e, T* context) {
  const Tag<T> d;
  Vec<T> sum[kVectors];
#pragma GCC unroll 8
  for (auto& s : sum) s = hn::Zero(d);
  for (int64_t j = 0; j < keys; ++j) {
    fetch.beside(j);
    const auto p = Set<T>(tile[j * width]);
#pragma GCC unroll 8
    for (int n = 0; n < kVectors; ++n)
      sum[n] = hn::MulAdd(p, row(j).load(e + n * kLanes<T>), sum[n]);
  }
  HWY_ALIGN T lanes[kVectors * kLanes<T>];
#pragma GCC unroll 8
  for (int n = 0; n < kVectors; ++n) hn::Store(sum[n], d, lanes + n * kLanes<T>);
  for (int64_t n = 0; n < kVectors * kLanes<T>; ++n) context[(e + n) * width] += lanes[n];
}

// context[e][i] += sum_j p_ij v_je for `rows` queries; context is [depth][width]. `fetch`
// prefetches values.
template <class T, class ValueRow>
void AddValueRows(const ValueRow& row, RowFetch fetch, const T* tile, int64_t keys, int64_t rows,
                  int64_t width, int64_t depth, T* context) {
  for (int64_t i = 0; i < rows; ++i) {
    int64_t e = 0;
    const auto add = [&](auto vectors) HWY_ATTR {
      for (; e + vectors * kLanes<T> <= depth; e += vectors * kLanes<T>) {
        AddValueVectors<vectors>(row, fetch, tile + i, keys, width, e, context + i);
        fetch = {};
      }
    };
    add(std::integral_constant<int, 8>());
    add(std::integral_constant<int, 4>());
    add(std::integral_constant<int, 1>());
    for (; e < depth; ++e) {
      T sum = 0;
      for (int64_t j = 0; j < keys; ++j) sum += tile[j * width + i] * row(j).at(e);
      context[e * width + i] += sum;
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
