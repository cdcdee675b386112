#if defined(ATTEND_KERNELS_BIAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_BIAS_INL_H_
#undef ATTEND_KERNELS_BIAS_INL_H_
#else
#define ATTEND_KERNELS_BIAS_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <optional>

#include "attend/kernels/cpu/columns-inl.h"
#include "attend/kernels/cpu/gate_sums-inl.h"
#include "attend/kernels/cpu/relative-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Outputs for the bias gradients of one head and chunk; null: not computed.
template <class T>
struct BiasGradients {
  T* dense = nullptr;
  T* relative = nullptr;
  T* centres = nullptr;  // [batch, heads, queries]
  T* widths = nullptr;
  T* slope = nullptr;            // one number
  double* query_sums = nullptr;  // [batch, heads, queries]
  double* key_sums = nullptr;    // [batch, heads, keys]
  T* query_products = nullptr;   // as Bias::query_products
  T* key_products = nullptr;
};

// Biases of a problem on tiles [keys][width] of one block of rows.
template <class T>
class TileBias {
 public:
  TileBias(const Problem<T>& problem, int64_t width, Arena<T>& arena)
      : problem_(problem), unit_(T(score_unit(problem.normaliser))) {
    const Bias<T>& bias = problem.bias;
    if (bias.dense.data != nullptr) scratch_ = arena.take(kTileKeys * width);
    if (bias.relative.data != nullptr) relative_.emplace(problem, width, arena);
    if (bias.query_sums != nullptr) gates_.emplace(problem, width, arena);
    if (bias.query_products != nullptr || bias.key_products != nullptr)
      columns_.emplace(problem, width, arena);
    if (bias.centres != nullptr) {
      centre_ = arena.take(width);
      inverse_ = arena.take(width);
    }
  }

  bool present() const {
    const Bias<T>& bias = problem_.bias;
    return bias.slopes != nullptr || bias.dense.data != nullptr || bias.centres != nullptr ||
           relative_ || gates_ || columns_;
  }

  // Adds the biases to scores, in the unit of the normaliser.
  void add(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width, T* tile) {
    const Bias<T>& bias = problem_.bias;
    if (bias.slopes != nullptr) add_slopes(first, key, keys, width, tile);
    if (bias.dense.data != nullptr) add_dense(first, rows, key, keys, width, tile);
    if (relative_) relative_->add(first, rows, key, keys, width, unit_, tile);
    if (bias.centres != nullptr) add_gaussian(first, rows, key, keys, width, tile);
    if (gates_) gates_->add(first, rows, key, keys, width, unit_, tile);
    if (columns_) columns_->add(first, rows, key, keys, width, unit_, tile);
  }

  // tile[j][i] = ds_ij
  void differentiate(const BiasGradients<T>& gradients, const Row& first, int64_t rows, int64_t key,
                     int64_t keys, int64_t width, const T* tile) {
    if (gradients.dense != nullptr)
      add_dense_gradient(gradients.dense, first, rows, key, keys, width, tile);
    if (gradients.slope != nullptr)
      *gradients.slope += slope_gradient(first, key, keys, width, tile);
    if (gradients.relative != nullptr)
      relative_->differentiate(gradients.relative, first, rows, key, keys, width, tile);
    if (gradients.centres != nullptr || gradients.widths != nullptr)
      add_gaussian_gradients(gradients, first, rows, key, keys, width, tile);
    if (gradients.query_sums != nullptr || gradients.key_sums != nullptr)
      gates_->differentiate(gradients.query_sums, gradients.key_sums, first, rows, key, keys, width,
                            tile);
    if (gradients.query_products != nullptr || gradients.key_products != nullptr)
      columns_->differentiate(gradients.query_products, gradients.key_products, first, rows, key,
                              keys, width, tile);
  }

 private:
  const T* dense(const Row& first, int64_t key) const {
    return problem_.bias.dense.row(first.batch, first.head, first.query) + key;
  }

  int64_t row_index(const Row& row) const {
    return (row.batch * problem_.shape.heads + row.head) * problem_.shape.queries + row.query;
  }

  // |i + offset - j| for the lanes of key j.
  HWY_INLINE Vec<T> distance(const Row& first, int64_t lane, int64_t key) const {
    const T ahead = static_cast<T>(first.query + lane + problem_.bias.slope_offset - key);
    return hn::Abs(hn::Add(hn::Iota(Tag<T>(), T(0)), Set<T>(ahead)));
  }

  // s_ij - slope |i + offset - j|
  void add_slopes(const Row& first, int64_t key, int64_t keys, int64_t width, T* tile) const {
    const Tag<T> d;
    const auto slope = Set<T>(problem_.bias.slopes[first.head] * unit_);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        T* cell = tile + j * width + lane;
        hn::Store(hn::NegMulAdd(slope, distance(first, lane, key + j), hn::Load(d, cell)), d, cell);
      }
    }
  }

  T slope_gradient(const Row& first, int64_t key, int64_t keys, int64_t width,
                   const T* tile) const {
    const Tag<T> d;
    auto sum = hn::Zero(d);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
        sum = hn::NegMulAdd(hn::Load(d, tile + j * width + lane), distance(first, lane, key + j),
                            sum);
      }
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  void add_dense(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width,
                 T* tile) {
    const Tag<T> d;
    LoadPanel(dense(first, key), problem_.bias.dense.row_stride, rows, keys, scratch_, width);
    for (int64_t i = 0; i < keys * width; i += kLanes<T>) {
      hn::Store(hn::MulAdd(hn::Load(d, scratch_ + i), Set<T>(unit_), hn::Load(d, tile + i)), d,
                tile + i);
    }
  }

  void add_dense_gradient(T* gradient, const Row& first, int64_t rows, int64_t key, int64_t keys,
                          int64_t width, const T* tile) {
    T* to = gradient + (dense(first, key) - problem_.bias.dense.data);
    Transpose(tile, width, keys, rows, scratch_, keys);
    for (int64_t r = 0; r < rows; ++r) {
      T* row = to + r * problem_.bias.dense.row_stride;
      for (int64_t j = 0; j < keys; ++j) row[j] += scratch_[r * keys + j];
    }
  }

  // Loads centres and 1 / width of the rows to lanes; lanes after the last row are flat. Inverses
  // are finite: a key at the centre is 0 widths away, even for the narrowest width.
  void load_gaussian(const Row& first, int64_t rows, int64_t width) {
    const T* centres = problem_.bias.centres + row_index(first);
    const T* widths = problem_.bias.widths + row_index(first);
    for (int64_t r = 0; r < width; ++r) {
      centre_[r] = r < rows ? centres[r] : T(0);
      inverse_[r] = r < rows ? std::min(1 / widths[r], std::numeric_limits<T>::max()) : T(0);
    }
  }

  // s_ij - (j - p_i)^2 / (2 width_i^2)
  void add_gaussian(const Row& first, int64_t rows, int64_t key, int64_t keys, int64_t width,
                    T* tile) {
    const Tag<T> d;
    load_gaussian(first, rows, width);
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto centre = hn::Load(d, centre_ + lane);
      const auto inverse = hn::Load(d, inverse_ + lane);
      for (int64_t j = 0; j < keys; ++j) {
        T* cell = tile + j * width + lane;
        const auto z = hn::Mul(hn::Sub(Set<T>(static_cast<T>(key + j)), centre), inverse);
        hn::Store(hn::NegMulAdd(hn::Mul(z, z), Set<T>(unit_ / 2), hn::Load(d, cell)), d, cell);
      }
    }
  }

  // With z_ij = (j - p_i) / width_i: dp_i = sum_j ds_ij z_ij / width_i, dwidth_i = sum_j ds_ij
  // z_ij^2 / width_i.
  void add_gaussian_gradients(const BiasGradients<T>& gradients, const Row& first, int64_t rows,
                              int64_t key, int64_t keys, int64_t width, const T* tile) {
    const Tag<T> d;
    load_gaussian(first, rows, width);
    for (int64_t lane = 0; lane < width; lane += kLanes<T>) {
      const auto centre = hn::Load(d, centre_ + lane), inverse = hn::Load(d, inverse_ + lane);
      auto once = hn::Zero(d), twice = hn::Zero(d);
      for (int64_t j = 0; j < keys; ++j) {
        const auto z = hn::Mul(hn::Sub(Set<T>(static_cast<T>(key + j)), centre), inverse);
        const auto moment = hn::Mul(z, hn::Load(d, tile + j * width + lane));
        once = hn::Add(once, moment);
        twice = hn::MulAdd(moment, z, twice);
      }
      HWY_ALIGN T first_moment[kLanes<T>], second_moment[kLanes<T>];
      hn::Store(once, d, first_moment);
      hn::Store(twice, d, second_moment);
      for (int64_t r = lane; r < std::min(rows, lane + kLanes<T>); ++r) {
        if (gradients.centres != nullptr)
          gradients.centres[row_index(first) + r] += inverse_[r] * first_moment[r - lane];
        if (gradients.widths != nullptr)
          gradients.widths[row_index(first) + r] += inverse_[r] * second_moment[r - lane];
      }
    }
  }

  const Problem<T>& problem_;
  T unit_;
  T* scratch_ = nullptr;
  std::optional<RelativeBias<T>> relative_;
  std::optional<GateSums<T>> gates_;
  std::optional<ColumnBias<T>> columns_;
  T* centre_ = nullptr;   // [width]
  T* inverse_ = nullptr;  // [width]
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
