#if defined(ATTEND_KERNELS_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_DOT_INL_H_
#undef ATTEND_KERNELS_DOT_INL_H_
#else
#define ATTEND_KERNELS_DOT_INL_H_
#endif

#include <algorithm>

#include "attend/kernels/cpu/bfloat16-inl.h"
#include "attend/kernels/cpu/matmul-inl.h"
#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// The dot family: s_ij = scale q_i . k_j.
template <class T>
class DotScores : public TileScores<T> {
 public:
  explicit DotScores(const Problem<T>& problem)
      : problem_(problem), scale_(T(problem.score.scale * score_unit(problem.normaliser))) {}

  int64_t panel_size(int64_t width) const override { return problem_.shape.depth * width; }

  // Loads queries as a panel [depth][width], scaled.
  void load_queries(const Row& first, int64_t rows, int64_t width, T* panel) const override {
    const T* from = problem_.query.row(first.batch, first.head, first.query);
    LoadPanel(from, problem_.query.row_stride, rows, problem_.shape.depth, panel, width);
    ScaleInPlace(panel, problem_.shape.depth * width, scale_);
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const T* panel, int64_t width,
              T* tile) const override {
    const int64_t head = KeyHead(problem_.shape, first.head);
    const T* key = problem_.key.row(first.batch, head, first_key);
    Multiply<T>(keys, width, problem_.shape.depth, {key, problem_.key.row_stride, 1},
                {panel, width}, false, {tile, width}, this->ahead_);
  }

 private:
  const Problem<T>& problem_;
  T scale_;
};

// ds_ij gives dq_i = scale sum_j ds_ij k_j and dk_j = scale sum_i ds_ij q_i.
template <class T>
class DotGradients : public TileGradients<T> {
 public:
  DotGradients(const BackwardPlan<T>& plan, Arena<T>& arena)
      : DotGradients(plan, RoundUpToLanes<T>(plan.problem->shape.depth), arena) {}

  void load_queries(const Row& first, int64_t rows, int64_t, const T*) override {
    first_ = first;
    query_count_ = rows;
    queries_ = FindWholeRows(problem_.query.row(first.batch, first.head, first.query),
                             problem_.query.row_stride, rows, depth_, rows_, padded_);
    fresh_ = true;
  }

  void add(const T* tile, int64_t first_key, int64_t chunk_key, int64_t keys,
           int64_t width) override {
    const int64_t head = KeyHead(problem_.shape, first_.head);
    const T* key = problem_.key.row(first_.batch, head, first_key);
    Multiply<T>(depth_, width, keys, {key, 1, problem_.key.row_stride}, {tile, width}, !fresh_,
                {query_gradient_, width}, this->ahead_);
    fresh_ = false;
    Multiply<T>(keys, padded_, query_count_, {tile, width, 1}, {queries_.data, queries_.stride},
                true, {key_gradient_ + chunk_key * padded_, padded_}, this->ahead_);
  }

  void store_query_gradient(int64_t rows, int64_t width, const View<T>& to) override {
    if (fresh_) std::fill_n(query_gradient_, depth_ * width, T(0));
    ScaleInPlace(query_gradient_, depth_ * width, T(problem_.score.scale));
    Transpose(query_gradient_, width, depth_, rows, to.row(first_.batch, first_.head, first_.query),
              to.row_stride);
  }

  void store_key_gradient(int64_t chunk_key, T* to) const override {
    const T* from = key_gradient_ + chunk_key * padded_;
    for (int64_t a = 0; a < depth_; ++a) to[a] = T(problem_.score.scale) * from[a];
  }

 protected:
  // Rows are padded to `padded` numbers.
  DotGradients(const BackwardPlan<T>& plan, int64_t padded, Arena<T>& arena)
      : problem_(*plan.problem),
        depth_(problem_.shape.depth),
        padded_(padded),
        rows_(arena.take(padded_ * kBackwardRows)),
        query_gradient_(arena.take(padded_ * kBackwardRows)),
        key_gradient_(arena.take(padded_ * plan.chunk_rows())) {
    std::fill_n(key_gradient_, padded_ * plan.chunk_rows(), T(0));
  }

  const Problem<T>& problem_;
  int64_t depth_, padded_;
  Row first_;
  int64_t query_count_ = 0;
  WholeRows<T> queries_ = {};
  bool fresh_ = true;  // nothing was added to query_gradient_ yet
  T* rows_;            // [rows][padded] queries, if they must be copied
  T* query_gradient_;  // [depth][width]
  T* key_gradient_;    // [chunk_keys][padded]
};

// The same by products of bf16.
class BFloat16DotGradients : public DotGradients<float> {
 public:
  BFloat16DotGradients(const BackwardPlan<float>& plan, Arena<float>& arena)
      : DotGradients(plan, BFloat16Plan::padded(plan.problem->shape.depth), arena),
        bfloat16_(plan.bfloat16),
        operand_(reinterpret_cast<uint32_t*>(arena.take(kBackwardRows / 2 * padded_))),
        tile_operand_(reinterpret_cast<uint32_t*>(arena.take(kTileKeys / 2 * kBackwardRows))) {}

  void load_queries(const Row& first, int64_t rows, int64_t, const float*) override {
    first_ = first;
    query_count_ = rows;
    PackBFloat16Rows(problem_.query.row(first.batch, first.head, first.query),
                     problem_.query.row_stride, rows, depth_, padded_, rows_, operand_);
    fresh_ = true;
  }

  void add(const float* tile, int64_t first_key, int64_t chunk_key, int64_t keys,
           int64_t width) override {
    PackRight(tile, width, BlockRows(first_key, keys), width, tile_operand_);
    MultiplyBFloat16Columns(bfloat16_, bfloat16_.key_columns, padded_, first_, first_key,
                            tile_operand_, width, !fresh_, query_gradient_);
    fresh_ = false;
    MultiplyBFloat16Tile(bfloat16_, tile, keys, query_count_, width, operand_, padded_,
                         reinterpret_cast<uint16_t*>(tile_operand_),
                         key_gradient_ + chunk_key * padded_);
  }

 private:
  const BFloat16Plan& bfloat16_;
  uint32_t* operand_;       // queries as the right operand of the gradients of keys
  uint32_t* tile_operand_;  // gradients of scores as an operand
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
