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

// Keys that are read together, so that what one head has fetched is there for the next.
constexpr int64_t kKeyBlock = 8;
// Keys whose numbers are fetched while others are read: each lies on a page of its own, and the
// hardware does not fetch ahead to another.
constexpr int64_t kFetchedKeys = 8;

// One row. `found` [keys] and `scores` [heads][room] are scratch.
class RowReader {
 public:
  RowReader(const CachedAttention& p, int64_t row, const float** found, float* scores, int64_t room)
      : p_(p),
        row_(row),
        keys_(p.lengths == nullptr ? p.keys : std::min(p.lengths[row], p.keys)),
        found_(found),
        scores_(scores),
        room_(room) {
    const int64_t slot = p.key_heads * (p.depth + p.value_depth);
    const int32_t* place = p.places + row * p.row_stride;
    for (int64_t j = 0; j < keys_; ++j) found_[j] = p.slots[j] + place[j * p.key_stride] * slot;
  }

  void read() {
    for (int64_t j = 0; j < keys_; j += 4) {
      const int64_t count = std::min<int64_t>(4, keys_ - j);
      p_.vector == nullptr ? score<false>(j, count) : score<true>(j, count);
    }
    if (p_.weights != nullptr) std::fill_n(p_.weights + row_ * p_.keys, p_.keys, 0.0F);
    float* context = p_.context + row_ * p_.context_stride;
    std::fill_n(context, p_.heads * p_.value_depth, 0.0F);
    for (int64_t h = 0; h < p_.heads && keys_ > 0; ++h) normalise(scores_ + h * room_);
    for (int64_t j = 0; j < keys_; j += kKeyBlock) {
      fetch(j + kFetchedKeys, kKeyBlock, value(0), p_.key_heads * p_.value_depth);
      for (int64_t h = 0; h < p_.heads; ++h)
        add(h, j, std::min(keys_, j + kKeyBlock), context + h * p_.value_depth);
    }
  }

 private:
  // Where in a slot the key and the value are that a head reads.
  int64_t key(int64_t head) const { return head / (p_.heads / p_.key_heads) * p_.depth; }
  int64_t value(int64_t head) const {
    return p_.key_heads * p_.depth + head / (p_.heads / p_.key_heads) * p_.value_depth;
  }

  // `size` numbers from `at` on in the slots of up to `count` keys, as far as they are there.
  HWY_INLINE void fetch(int64_t first, int64_t count, int64_t at, int64_t size) const {
    constexpr int64_t line = 64 / sizeof(float);
    const int64_t end = std::min(keys_, first + count);
    for (int64_t j = first; j < end; ++j)
      for (int64_t k = 0; k < size; k += line) hwy::Prefetch(found_[j] + at + k);
  }

  // The scores of `count` of four keys, for all heads.
  template <bool kAdditive>
  HWY_INLINE void score(int64_t first, int64_t count) {
    const Tag<float> d;
    fetch(first + kFetchedKeys, 4, 0, p_.key_heads * p_.depth);
    const float* keys[4];
    for (int64_t n = 0; n < 4; ++n) keys[n] = found_[first + std::min(n, count - 1)];
    const float* query = p_.query + row_ * p_.query_stride;
    for (int64_t h = 0; h < p_.heads; ++h, query += p_.depth) {
      const int64_t at = key(h);
      Vec<float> sum[4];
#pragma GCC unroll 4
      for (auto& each : sum) each = hn::Zero(d);
      for (int64_t k = 0; k < p_.depth; k += kLanes<float>) {
        const auto q = hn::LoadU(d, query + k);
#pragma GCC unroll 4
        for (int n = 0; n < 4; ++n) {
          const auto own = hn::LoadU(d, keys[n] + at + k);
          if constexpr (kAdditive)
            sum[n] = hn::MulAdd(hn::LoadU(d, p_.vector + k), Tanh(hn::Add(q, own)), sum[n]);
          else
            sum[n] = hn::MulAdd(q, own, sum[n]);
        }
      }
      SumFour(sum, scores_ + h * room_ + first);
    }
  }

  // Scores to weights. The numbers behind the last key count as -inf.
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

  // context += sum_j w_j v_j of the keys [first, end) and one head.
  HWY_INLINE void add(int64_t head, int64_t first, int64_t end, float* context) {
    constexpr int64_t two = 2 * kLanes<float>;
    int64_t k = 0;
    for (; k + two <= p_.value_depth; k += two) add_vectors<2>(head, first, end, k, context + k);
    for (; k < p_.value_depth; k += kLanes<float>) add_vectors<1>(head, first, end, k, context + k);
  }

  template <int kV>
  HWY_INLINE void add_vectors(int64_t head, int64_t first, int64_t end, int64_t k, float* context) {
    const Tag<float> d;
    const float* weights = scores_ + head * room_;
    const int64_t at = value(head) + k;
    Vec<float> sum[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) sum[v] = hn::LoadU(d, context + v * kLanes<float>);
    for (int64_t j = first; j < end; ++j) {
      const auto weight = hn::Set(d, weights[j]);
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v)
        sum[v] = hn::MulAdd(weight, hn::LoadU(d, found_[j] + at + v * kLanes<float>), sum[v]);
    }
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) hn::StoreU(sum[v], d, context + v * kLanes<float>);
  }

  const CachedAttention& p_;
  int64_t row_, keys_;
  const float** found_;
  float* scores_;
  int64_t room_;
};

void ReadCaches(const CachedAttention& p) {
  // Four scores are written at a time, and whole vectors read.
  const int64_t room = RoundUpToLanes<float>(p.keys + 3);
  std::vector<const float*> found(static_cast<size_t>(p.keys));
  std::vector<float> scores(static_cast<size_t>(p.heads * room));
  for (int64_t row = 0; row < p.rows; ++row)
    RowReader(p, row, found.data(), scores.data(), room).read();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(ReadCaches);

void cached_attention(const CachedAttention& problem) { HWY_DYNAMIC_DISPATCH(ReadCaches)(problem); }

}  // namespace attend::kernels
#endif
