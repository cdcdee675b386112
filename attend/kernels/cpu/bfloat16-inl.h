#if defined(ATTEND_KERNELS_BFLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_BFLOAT16_INL_H_
#undef ATTEND_KERNELS_BFLOAT16_INL_H_
#else
#define ATTEND_KERNELS_BFLOAT16_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <utility>

#include "attend/kernels/cpu/panel-inl.h"
#include "attend/kernels/cpu/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// Products of the dot family on bf16 arrays. Stored bf16 numbers are operands directly; weights and
// score gradients are floats and rounded to bf16.

// Rounded to 8 significant bits in the upper half of each number; keeps infinities and NaN of
// arithmetic operations.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<Tag<float>>> RoundToBFloat16(Vec<float> x) {
  const hn::RebindToUnsigned<Tag<float>> d;
  return hn::Add(hn::BitCast(d, x), hn::Set(d, 0x8000));
}

// Position of the rows of an operand within its product; other rows are 0.
struct BFloat16Rows {
  int64_t first, rows, padded;
};

// A vector of pairs: bf16 of `low` in the lower halves, of `high` in the upper ones.
HWY_INLINE void StorePair(Vec<float> low, Vec<float> high, uint32_t* to) {
  const hn::RebindToUnsigned<Tag<float>> bits;
  const auto lower = hn::ShiftRight<16>(RoundToBFloat16(low));
  hn::StoreU(hn::OrAnd(lower, RoundToBFloat16(high), hn::Set(bits, 0xffff0000U)), bits, to);
}

// Packs a vector of columns of a right operand: to[k / 2 * columns] holds rows k and k + 1, which
// are value(row) from place.first on. Calls value in the order of rows.
template <class Value>
HWY_INLINE void PackColumns(const BFloat16Rows& place, int64_t columns, const Value& value,
                            uint32_t* to) {
  const Tag<float> d;
  if (place.rows == place.padded) {
    for (int64_t row = 0; row < place.rows; row += 2, to += columns) {
      const auto low = value(row);
      StorePair(low, value(row + 1), to);
    }
    return;
  }
  for (int64_t k = 0; k < place.padded; k += 2, to += columns) {
    const int64_t row = k - place.first;
    const bool even = row >= 0 && row < place.rows, odd = row >= -1 && row + 1 < place.rows;
    const auto low = even ? value(row) : hn::Zero(d);
    StorePair(low, odd ? value(row + 1) : hn::Zero(d), to);
  }
}

// Packs rows of floats as a right operand: to[k / 2][c] holds rows k and k + 1. The columns must be
// whole vectors.
inline void PackRight(const float* from, int64_t from_stride, const BFloat16Rows& place,
                      int64_t columns, uint32_t* to) {
  for (int64_t c = 0; c < columns; c += kLanes<float>) {
    const auto value = [=](int64_t row) HWY_ATTR {
      return hn::LoadU(Tag<float>(), from + row * from_stride + c);
    };
    PackColumns(place, columns, value, to + c);
  }
}

// Packs rows of floats as a left operand: to[r][c], 0 after the last column and row. `stride` and
// the room are whole vectors.
inline void PackLeft(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                     int64_t padded_rows, uint16_t* to, int64_t stride) {
  const Tag<float> d;
  const hn::RebindToUnsigned<Tag<float>> bits;
  const hn::Rebind<uint16_t, Tag<float>> halves;
  for (int64_t r = 0; r < padded_rows; ++r, to += stride) {
    for (int64_t c = 0; c < stride; c += kLanes<float>) {
      auto x = hn::Zero(d);
      if (r < rows && c + kLanes<float> <= columns) {
        x = hn::LoadU(d, from + r * from_stride + c);
      } else if (r < rows && c < columns) {
        x = hn::MaskedLoad(hn::FirstN(d, columns - c), d, from + r * from_stride + c);
      }
      const auto high = hn::ShiftRight<16>(RoundToBFloat16(x));
      hn::StoreU(hn::DemoteTo(halves, hn::BitCast(hn::RebindToSigned<decltype(bits)>(), high)),
                 halves, to + c);
    }
  }
}

// Copies stored rows, padded with 0 to `padded_rows` rows of `padded` numbers.
inline void CopyBFloat16Rows(const View<const uint16_t>& from, const Row& first, int64_t rows,
                             int64_t padded_rows, int64_t depth, int64_t padded, uint16_t* to) {
  const Tag<uint16_t> d;
  const int64_t whole = depth / kLanes<uint16_t> * kLanes<uint16_t>;
  for (int64_t r = 0; r < rows; ++r, to += padded) {
    const uint16_t* const row = from.row(first.batch, first.head, first.query + r);
    for (int64_t a = 0; a < whole; a += kLanes<uint16_t>)
      hn::StoreU(hn::LoadU(d, row + a), d, to + a);
    for (int64_t a = whole; a < padded; ++a) to[a] = a < depth ? row[a] : uint16_t{0};
  }
  std::fill_n(to, (padded_rows - rows) * padded, uint16_t{0});
}

// Transposes one block of stored rows, moving pairs of rows.
inline void TransposeBFloat16Rows(const View<const uint16_t>& from, const Row& first, int64_t rows,
                                  int64_t depth, int64_t padded, Arena<float>& arena,
                                  uint16_t* to) {
  constexpr int64_t kPairs = kTileKeys / 2;
  float* const pairs = arena.take(kPairs * padded);
  for (int64_t pair = 0; pair < kPairs; ++pair) {
    const int64_t r = first.query + 2 * pair;
    const uint16_t* const even = 2 * pair < rows ? from.row(first.batch, first.head, r) : nullptr;
    const uint16_t* const odd =
        2 * pair + 1 < rows ? from.row(first.batch, first.head, r + 1) : nullptr;
    float* const target = pairs + pair * padded;
    std::fill_n(target, padded, 0.0F);
    for (int64_t a = 0; a < depth && odd != nullptr; ++a)
      target[a] = std::bit_cast<float>(uint32_t{even[a]} | uint32_t{odd[a]} << 16);
    for (int64_t a = 0; a < depth && even != nullptr && odd == nullptr; ++a)
      target[a] = std::bit_cast<float>(uint32_t{even[a]});
  }
  Transpose(pairs, padded, kPairs, padded, reinterpret_cast<float*>(to), kPairs);
}

inline void PackBFloat16Block(const BFloat16Plan& plan, int64_t task, Arena<float>& arena) {
  const Shape& s = plan.shape;
  const int64_t head = task / plan.blocks(), key = task % plan.blocks() * kTileKeys;
  const Row first{head / s.key_heads, head % s.key_heads, key};
  const int64_t rows = std::min(kTileKeys, s.keys - key);
  const auto pack = [&](const View<const uint16_t>& from, int64_t depth, uint16_t* by_rows,
                        uint16_t* by_columns) {
    const int64_t padded = BFloat16Plan::padded(depth), offset = task * kTileKeys * padded;
    if (by_rows != nullptr)
      CopyBFloat16Rows(from, first, rows, kTileKeys, depth, padded, by_rows + offset);
    if (by_columns != nullptr)
      TransposeBFloat16Rows(from, first, rows, depth, padded, arena, by_columns + offset);
  };
  pack(plan.key, s.depth, plan.key_rows, plan.key_columns);
  pack(plan.value, s.value_depth, plan.value_rows, plan.value_columns);
}

// Loads stored rows as the columns of a right operand, pair by pair: LoadPanel for bf16. `room`:
// padded / 2 * width numbers.
inline void LoadBFloat16Panel(const View<const uint16_t>& from, const Row& first, int64_t rows,
                              int64_t depth, int64_t width, float* room, float* panel) {
  const int64_t padded = BFloat16Plan::padded(depth);
  CopyBFloat16Rows(from, first, rows, width, depth, padded, reinterpret_cast<uint16_t*>(room));
  Transpose(room, padded / 2, width, padded / 2, panel, width);
}

constexpr int64_t WholeBFloat16Rows(int64_t rows) {
  return (rows + kBFloat16Rows - 1) / kBFloat16Rows * kBFloat16Rows;
}

// tile[j][i] = scale sum_a rows[j][a] panel[a][i] for keys of one block; `rows` is key_rows or
// value_rows. The tile has room for whole blocks of kBFloat16Rows.
inline void MultiplyBFloat16Rows(const BFloat16Plan& plan, const uint16_t* rows, int64_t padded,
                                 const Row& first, int64_t first_key, int64_t keys,
                                 const float* panel, int64_t width, float* tile, float scale = 1) {
  const int64_t block = plan.block(first.batch, KeyHead(plan.shape, first.head), first_key);
  plan.kernels->multiply({
      .rows = WholeBFloat16Rows(keys),
      .columns = width,
      .depth = padded,
      .left = rows + (block * kTileKeys + first_key % kTileKeys) * padded,
      .left_stride = padded,
      .right = reinterpret_cast<const uint32_t*>(panel),
      .right_stride = width,
      .scale = scale,
      .out = tile,
      .out_stride = width,
  });
}

// Position of keys within their block.
inline BFloat16Rows BlockRows(int64_t first_key, int64_t keys) {
  return {first_key % kTileKeys, keys, kTileKeys};
}

// out[a][i] (+)= sum_j columns[a][j] tile[j][i] for keys of one block; `columns` is key_columns or
// value_columns. `operand`: the tile, packed as BlockRows; kTileKeys / 2 * width numbers.
inline void MultiplyBFloat16Columns(const BFloat16Plan& plan, const uint16_t* columns,
                                    int64_t padded, const Row& first, int64_t first_key,
                                    const uint32_t* operand, int64_t width, bool accumulate,
                                    float* out) {
  const int64_t block = plan.block(first.batch, KeyHead(plan.shape, first.head), first_key);
  plan.kernels->multiply({
      .rows = padded,
      .columns = width,
      .depth = kTileKeys,
      .left = columns + block * kTileKeys * padded,
      .left_stride = kTileKeys,
      .right = operand,
      .right_stride = width,
      .accumulate = accumulate,
      .out = out,
      .out_stride = width,
  });
}

// Packs rows of floats with bf16 values as the right operand of MultiplyBFloat16Tile. `room`:
// kBackwardRows rows of `padded` numbers.
inline void PackBFloat16Rows(const float* from, int64_t from_stride, int64_t rows, int64_t depth,
                             int64_t padded, float* room, uint32_t* to) {
  const WholeRows<float> whole = FindWholeRows(from, from_stride, rows, depth, room, padded);
  PackRight(whole.data, whole.stride, {0, rows, BFloat16Plan::padded(rows)}, padded, to);
}

// out[j][a] += sum_i tile[j][i] rows[i][a] for `queries` rows packed by PackBFloat16Rows.
// `operand`: kTileKeys * kBackwardRows numbers; out has whole blocks of kBFloat16Rows.
inline void MultiplyBFloat16Tile(const BFloat16Plan& plan, const float* tile, int64_t keys,
                                 int64_t queries, int64_t width, const uint32_t* rows,
                                 int64_t padded, uint16_t* operand, float* out) {
  const int64_t whole = WholeBFloat16Rows(keys), depth = BFloat16Plan::padded(queries);
  PackLeft(tile, width, keys, queries, whole, operand, depth);
  plan.kernels->multiply({
      .rows = whole,
      .columns = padded,
      .depth = depth,
      .left = operand,
      .left_stride = depth,
      .right = rows,
      .right_stride = padded,
      .accumulate = true,
      .out = out,
      .out_stride = padded,
  });
}

// Scores of the dot family. Queries are packed unscaled; the product applies the scale.
class BFloat16DotScores : public TileScores<float> {
 public:
  BFloat16DotScores(const Problem<float>& problem, const BFloat16Plan& plan, int64_t width,
                    Arena<float>& arena)
      : problem_(problem),
        plan_(plan),
        scale_(float(problem.score.scale * score_unit(problem.normaliser))),
        padded_(BFloat16Plan::padded(problem.shape.depth)),
        rows_(arena.take(padded_ / 2 * width)) {}

  int64_t panel_size(int64_t width) const override { return padded_ / 2 * width; }

  float defer_scale() override { return scale_ > 0 ? std::exchange(scale_, 1.0F) : 1; }

  void load_queries(const Row& first, int64_t rows, int64_t width, float* panel) const override {
    LoadBFloat16Panel(plan_.query, first, rows, problem_.shape.depth, width, rows_, panel);
  }

  void scores(const Row& first, int64_t first_key, int64_t keys, const float* panel, int64_t width,
              float* tile) const override {
    MultiplyBFloat16Rows(plan_, plan_.key_rows, padded_, first, first_key, keys, panel, width, tile,
                         scale_);
  }

 private:
  const Problem<float>& problem_;
  const BFloat16Plan& plan_;
  float scale_;
  int64_t padded_;
  float* rows_;  // [width][padded] as stored
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
