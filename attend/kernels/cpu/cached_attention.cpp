#include "attend/kernels/cached_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/cached_attention.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>
#include <limits>
#include <vector>

#include "attend/kernels/cpu/gates-inl.h"
#include "attend/kernels/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Keys processed together; lines fetched for one head are reused by the next.
constexpr int64_t kKeyBlock = 8;
// Reads the rows of a problem one after another, from caches of type S.
template <class S>
class CacheReader {
 public:
  explicit CacheReader(const CachedAttention& p)
      : p_(p),
        found_(static_cast<size_t>(p.keys)),
        // Scores are written four at a time and read in whole vectors.
        room_(RoundUpToLanes<float>(p.keys + 3)),
        all_scores_(static_cast<size_t>(p.heads * room_)) {}

  void read(int64_t row) {
    row_ = row;
    keys_ = p_.lengths == nullptr ? p_.keys : std::min(p_.lengths[row], p_.keys);
    const int64_t bytes = p_.key_heads * p_.depth * static_cast<int64_t>(sizeof(S));
    ahead_ = std::min(kFetchedBytes / bytes, keys_);
    for (int64_t j = 0; j < keys_; ++j) found_[static_cast<size_t>(j)] = slot(row, j);
    for (int64_t j = 0; j < keys_; j += 4) {
      const int64_t count = std::min<int64_t>(4, keys_ - j);
      p_.vector == nullptr ? score<false>(j, count) : score<true>(j, count);
    }
    if (p_.bias != nullptr) add_bias();
    if (p_.weights != nullptr) std::fill_n(p_.weights + row_ * p_.keys, p_.keys, 0.0F);
    float* context = p_.context + row_ * p_.context_stride;
    std::fill_n(context, p_.heads * p_.value_depth, 0.0F);
    for (int64_t h = 0; h < p_.heads && keys_ > 0; ++h) normalise(scores(h));
    for (int64_t j = 0; j < keys_; j += kKeyBlock) {
      fetch_values(j, kKeyBlock);
      for (int64_t h = 0; h < p_.heads; ++h)
        add(h, j, std::min(keys_, j + kKeyBlock), context + h * p_.value_depth);
    }
  }

 private:
  // Offset within a slot of the key, or value, that a head reads.
  int64_t key(int64_t head) const { return head / (p_.heads / p_.key_heads) * p_.depth; }
  int64_t value(int64_t head) const {
    return p_.value_offset + head / (p_.heads / p_.key_heads) * p_.value_depth;
  }

  const S* found(int64_t j) const { return found_[static_cast<size_t>(j)]; }
  float* scores(int64_t head) { return all_scores_.data() + head * room_; }

  const S* slot(int64_t row, int64_t j) const {
    return static_cast<const S*>(p_.slots[j]) +
           p_.places[row * p_.row_stride + j * p_.key_stride] * p_.place_stride;
  }

  static HWY_INLINE void fetch(const S* from, int64_t size) {
    constexpr int64_t line = 64 / sizeof(S);
    for (int64_t k = 0; k < size; k += line) hwy::Prefetch(from + k);
  }

  // Prefetches while keys from `first` on are read: later keys and, after the last, values.
  HWY_INLINE void fetch_keys(int64_t first, int64_t count) const {
    const int64_t size = p_.key_heads * p_.depth;
    for (int64_t j = first + ahead_; j < first + ahead_ + count; ++j) {
      if (j < keys_)
        fetch(found(j), size);
      else
        fetch(found(j - keys_) + value(0), p_.key_heads * p_.value_depth);
    }
  }

  // Prefetches while values are read: later values and, after the last, keys of the next row.
  HWY_INLINE void fetch_values(int64_t first, int64_t count) const {
    const int64_t size = p_.key_heads * p_.value_depth;
    for (int64_t j = first + ahead_; j < first + ahead_ + count; ++j) {
      if (j < keys_)
        fetch(found(j) + value(0), size);
      else if (row_ + 1 < p_.rows && j - keys_ < p_.keys)
        fetch(slot(row_ + 1, j - keys_), p_.key_heads * p_.depth);
    }
  }

  // Computes the scores of `count` of four keys for all heads.
  template <bool kAdditive>
  HWY_INLINE void score(int64_t first, int64_t count) {
    const Tag<float> d;
    fetch_keys(first, count);
    const S* keys[4];
    for (int64_t n = 0; n < 4; ++n) keys[n] = found(first + std::min(n, count - 1));
    const float* query = p_.query + row_ * p_.query_stride;
    for (int64_t h = 0; h < p_.heads; ++h, query += p_.depth) {
      const int64_t offset = key(h);
      Vec<float> sum[4];
#pragma GCC unroll 4
      for (auto& each : sum) each = hn::Zero(d);
      for (int64_t k = 0; k < p_.depth; k += kLanes<float>) {
        const auto q = hn::LoadU(d, query + k);
#pragma GCC unroll 4
        for (int n = 0; n < 4; ++n) {
          const auto own = Load(keys[n] + offset + k);
          if constexpr (kAdditive)
            sum[n] = hn::MulAdd(hn::LoadU(d, p_.vector + k), Tanh(hn::Add(q, own)), sum[n]);
          else
            sum[n] = hn::MulAdd(q, own, sum[n]);
        }
      }
      SumFour(sum, scores(h) + first);
    }
  }

  void add_bias() {
    for (int64_t h = 0; h < p_.heads; ++h) {
      const float* bias = p_.bias + h * p_.bias_stride + p_.bias_offsets[row_];
      float* own = scores(h);
      for (int64_t j = 0; j < keys_; ++j) own[j] += bias[j];
    }
  }

  // Turns scores into weights. Padding after the last key counts as -inf.
  HWY_INLINE void normalise(float* scores) {
    const Tag<float> d;
    const int64_t end = RoundUpToLanes<float>(keys_);
    std::fill(scores + keys_, scores + end, -std::numeric_limits<float>::infinity());
    auto largest = hn::LoadU(d, scores);
    for (int64_t j = kLanes<float>; j < end; j += kLanes<float>)
      largest = hn::Max(largest, hn::LoadU(d, scores + j));
    largest = hn::MaxOfLanes(d, largest);
    const auto scale = hn::Set(d, p_.scale * static_cast<float>(kLog2E));
    auto sum = hn::Zero(d);
    for (int64_t j = 0; j < end; j += kLanes<float>) {
      const auto power = Exp2<float>(hn::Mul(hn::Sub(hn::LoadU(d, scores + j), largest), scale));
      sum = hn::Add(sum, power);
      hn::StoreU(power, d, scores + j);
    }
    const auto share = hn::Div(hn::Set(d, 1.0F), hn::SumOfLanes(d, sum));
    for (int64_t j = 0; j < end; j += kLanes<float>)
      hn::StoreU(hn::Mul(hn::LoadU(d, scores + j), share), d, scores + j);
    if (p_.weights == nullptr) return;
    float* mean = p_.weights + row_ * p_.keys;
    for (int64_t j = 0; j < keys_; ++j) mean[j] += scores[j] / static_cast<float>(p_.heads);
  }

  // context += sum_j w_j v_j for keys [first, end) and one head.
  HWY_INLINE void add(int64_t head, int64_t first, int64_t end, float* context) {
    constexpr int64_t two = 2 * kLanes<float>;
    int64_t k = 0;
    for (; k + two <= p_.value_depth; k += two) add_vectors<2>(head, first, end, k, context + k);
    for (; k < p_.value_depth; k += kLanes<float>) add_vectors<1>(head, first, end, k, context + k);
  }

  template <int kV>
  HWY_INLINE void add_vectors(int64_t head, int64_t first, int64_t end, int64_t k, float* context) {
    const Tag<float> d;
    const S* const* found = found_.data();
    const float* weights = scores(head);
    const int64_t offset = value(head) + k;
    Vec<float> sum[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) sum[v] = hn::LoadU(d, context + v * kLanes<float>);
    for (int64_t j = first; j < end; ++j) {
      const auto weight = hn::Set(d, weights[j]);
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v)
        sum[v] = hn::MulAdd(weight, Load(found[j] + offset + v * kLanes<float>), sum[v]);
    }
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) hn::StoreU(sum[v], d, context + v * kLanes<float>);
  }

  const CachedAttention& p_;
  int64_t row_ = 0, keys_ = 0;
  int64_t ahead_ = 0;            // keys fetched ahead of reading
  std::vector<const S*> found_;  // keys of the row
  int64_t room_;
  std::vector<float> all_scores_;  // [heads][room]
};

template <class S>
void ReadRows(const CachedAttention& p) {
  CacheReader<S> reader(p);
  for (int64_t row = 0; row < p.rows; ++row) reader.read(row);
}

void ReadCaches(const CachedAttention& p) {
  p.type == CacheType::float32 ? ReadRows<float>(p) : ReadRows<BFloat16>(p);
}

template <class S>
void WriteRows(const CachedRows& p) {
  const Tag<float> d;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* from = p.from + r * p.from_stride;
    S* to = static_cast<S*>(p.to) + r * p.to_stride;
    for (int64_t k = 0; k < p.columns; k += kLanes<float>) {
      const auto x = hn::LoadU(d, from + k);
      // Rounding could carry over in the bits of a NaN.
      const auto nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
      Store(kIsHalf<S> ? hn::IfThenElse(hn::IsNaN(x), nan, x) : x, to + k);
    }
  }
}

void CacheRows(const CachedRows& p) {
  p.type == CacheType::float32 ? WriteRows<float>(p) : WriteRows<BFloat16>(p);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(ReadCaches);
HWY_EXPORT(CacheRows);

void cached_attention(const CachedAttention& problem) { HWY_DYNAMIC_DISPATCH(ReadCaches)(problem); }

void cache_rows(const CachedRows& problem) { HWY_DYNAMIC_DISPATCH(CacheRows)(problem); }

}  // namespace attend::kernels
#endif
