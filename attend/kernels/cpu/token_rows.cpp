#include "attend/kernels/token_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/token_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "attend/kernels/cpu/packed-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// State of a row: sums of exp(y - reference), and its best tokens.
class TokenRow {
 public:
  TokenRow(const TokenRows& p, int64_t row)
      : best_(p.best),
        excluded_(p.excluded),
        excluded_end_(p.excluded + p.excluded_count),
        values_(p.log_probabilities + row * p.best),
        tokens_(p.tokens + row * p.best) {
    std::fill_n(values_, best_, kNever);
    std::fill_n(tokens_, best_, 0);
    std::fill_n(sums_, kLanes<float>, 0.0F);
  }

  // Adds the logits of the panel of tokens from `first` on; padding is -inf.
  HWY_INLINE void add(const float* logits, int64_t first) {
    const Tag<float> d;
    const auto least = hn::Set(d, values_[best_ - 1]);
    auto larger = hn::Gt(hn::LoadU(d, logits), least);
    for (int64_t c = kLanes<float>; c < PackedMatrix::panel; c += kLanes<float>)
      larger = hn::Or(larger, hn::Gt(hn::LoadU(d, logits + c), least));
    if (!hn::AllFalse(d, larger)) keep(logits, first);
    auto sum = hn::LoadU(d, sums_);
    const auto reference = hn::Set(d, reference_);
    for (int64_t c = 0; c < PackedMatrix::panel; c += kLanes<float>) {
      const auto below = hn::Sub(hn::LoadU(d, logits + c), reference);
      sum = hn::Add(sum, Exp2<float>(hn::Mul(below, hn::Set(d, static_cast<float>(kLog2E)))));
    }
    hn::StoreU(sum, d, sums_);
  }

  // log sum_t exp(y_t)
  float log_sum() const {
    const Tag<float> d;
    return reference_ + std::log(hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, sums_))));
  }

 private:
  // exp(20) times the number of tokens is far below the largest float, and a reference that rarely
  // moves costs nothing.
  static constexpr float kSlack = 20;

  HWY_NOINLINE void keep(const float* logits, int64_t first) {
    float largest = kNever;
    for (int64_t c = 0; c < PackedMatrix::panel; ++c) {
      if (!(logits[c] > values_[best_ - 1])) continue;
      largest = std::max(largest, logits[c]);
      if (std::find(excluded_, excluded_end_, first + c) == excluded_end_)
        insert(logits[c], first + c);
    }
    if (!(largest > reference_ + kSlack)) return;
    const float factor = std::exp(reference_ - largest);
    for (float& sum : sums_) sum *= factor;
    reference_ = largest;
  }

  void insert(float value, int64_t token) {
    int64_t place = best_ - 1;
    for (; place > 0 && value > values_[place - 1]; --place) {
      values_[place] = values_[place - 1];
      tokens_[place] = tokens_[place - 1];
    }
    values_[place] = value;
    tokens_[place] = token;
  }

  int64_t best_;
  const int64_t *excluded_, *excluded_end_;
  float* values_;
  int64_t* tokens_;
  float reference_ = std::numeric_limits<float>::lowest() / 2;
  float sums_[kLanes<float>];
};

struct Given {
  int64_t token, row;
};

// Rows with a fixed token, sorted by token.
std::vector<Given> GivenTokens(const TokenRows& p) {
  std::vector<Given> all;
  for (int64_t r = 0; p.given != nullptr && r < p.rows; ++r)
    if (p.given[r] >= 0) all.push_back({p.given[r], r});
  std::sort(all.begin(), all.end(), [](Given a, Given b) { return a.token < b.token; });
  return all;
}

// Logits of `rows` rows from `first` on for the panel of tokens from `column` on. Meanwhile fetches
// `ahead`, if given.
HWY_INLINE void PanelLogits(const TokenRows& p, const LeftRows& left, int64_t column, int64_t first,
                            int64_t rows, float* block, MemoryAhead* ahead = nullptr) {
  const int64_t there = std::min(PackedMatrix::panel, p.matrix->columns() - column);
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(p.matrix->bias(column), PackedMatrix::panel, block + r * PackedMatrix::panel);
  AddPanel(*p.matrix, column, left, first, rows, {block, PackedMatrix::panel}, ahead);
  for (int64_t r = 0; r < rows && there < PackedMatrix::panel; ++r)
    std::fill(block + r * PackedMatrix::panel + there, block + (r + 1) * PackedMatrix::panel,
              kNever);
}

// State of all rows; panels must arrive in order.
class TokenLogits {
 public:
  explicit TokenLogits(const TokenRows& p)
      : p_(p), given_(GivenTokens(p)), given_logits_(given_.size()) {
    rows_.reserve(static_cast<size_t>(p.rows));
    for (int64_t r = 0; r < p.rows; ++r) rows_.emplace_back(p, r);
  }

  // Adds the logits of `count` rows from `first` on for the panel of tokens from `column` on.
  HWY_INLINE void add(const float* block, int64_t column, int64_t first, int64_t count) {
    const int64_t there = std::min(PackedMatrix::panel, p_.matrix->columns() - column);
    for (int64_t r = 0; r < count; ++r) {
      const float* logits = block + r * PackedMatrix::panel;
      rows_[static_cast<size_t>(first + r)].add(logits, column);
      if (p_.all != nullptr)
        std::copy_n(logits, there, p_.all + (first + r) * p_.matrix->columns() + column);
    }
    while (given_done_ < given_.size() && given_[given_done_].token < column) ++given_done_;
    for (size_t n = given_done_; n < given_.size() && given_[n].token < column + there; ++n)
      if (given_[n].row >= first && given_[n].row < first + count)
        given_logits_[n] =
            block[(given_[n].row - first) * PackedMatrix::panel + given_[n].token - column];
  }

  void finish() {
    for (size_t n = 0; n < given_.size(); ++n) {
      float* values = p_.log_probabilities + given_[n].row * p_.best;
      std::fill_n(values, p_.best, kNever);
      values[0] = given_logits_[n];
      p_.tokens[given_[n].row * p_.best] = given_[n].token;
    }
    const int64_t tokens = p_.matrix->columns();
    for (int64_t r = 0; r < p_.rows; ++r) {
      const float sum = rows_[static_cast<size_t>(r)].log_sum();
      for (int64_t n = 0; n < p_.best; ++n) p_.log_probabilities[r * p_.best + n] -= sum;
      if (p_.all == nullptr) continue;
      float* all = p_.all + r * tokens;
      for (int64_t t = 0; t < tokens; ++t) all[t] -= sum;
    }
  }

 private:
  const TokenRows& p_;
  std::vector<TokenRow> rows_;
  std::vector<Given> given_;
  std::vector<float> given_logits_;
  size_t given_done_ = 0;  // fixed tokens of earlier panels
};

// Maximum number of rows for which threads share the logits, which are kept until all are computed.
constexpr int64_t kSharedRows = 8;

void AllTokenRows(const TokenRows& p) {
  TokenLogits all(p);
  const PackedMatrix& matrix = *p.matrix;
  const LeftRows left(matrix, p.rows, p.a, p.a_stride);
  if (p.rows <= kSharedRows && matrix.columns() > SharedColumns(matrix) && is_helped()) {
    const std::unique_ptr<float[]> logits(
        new float[static_cast<size_t>(p.rows * matrix.padded_columns())]);
    ShareColumns(matrix, [&](int64_t first, int64_t end, int64_t /*next*/) HWY_ATTR {
      for (int64_t column = first; column < end; column += PackedMatrix::panel)
        PanelLogits(p, left, column, 0, p.rows, logits.get() + p.rows * column);
    });
    for (int64_t column = 0; column < matrix.columns(); column += PackedMatrix::panel)
      all.add(logits.get() + p.rows * column, column, 0, p.rows);
  } else {
    HWY_ALIGN float block[kPackedRows * PackedMatrix::panel];
    const TileThread multiplies(UsesTiles(matrix, p.rows));
    const int64_t blocks = (p.rows + kPackedRows - 1) / kPackedRows;
    for (int64_t column = 0; column < matrix.columns(); column += PackedMatrix::panel) {
      for (int64_t i = 0; i < blocks; ++i) {
        const int64_t first = i * kPackedRows, count = std::min(kPackedRows, p.rows - first);
        MemoryAhead ahead = PanelAhead(matrix, column + PackedMatrix::panel, i, blocks);
        PanelLogits(p, left, column, first, count, block, &ahead);
        all.add(block, column, first, count);
      }
    }
  }
  all.finish();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(AllTokenRows);

void token_rows(const TokenRows& problem) { HWY_DYNAMIC_DISPATCH(AllTokenRows)(problem); }

}  // namespace attend::kernels
#endif
