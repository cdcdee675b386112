#include "attend/kernels/token_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/token_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attend/kernels/cpu/packed-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// What a row has so far: sums of exp(y - reference), and its best tokens.
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

  // The logits of the panel of tokens from `first` on, -inf where there are none.
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
  // exp(20) times all tokens is far from the largest float, and a reference that seldom moves
  // costs nothing.
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

// Rows with a token that they are given, by token.
std::vector<Given> GivenTokens(const TokenRows& p) {
  std::vector<Given> all;
  for (int64_t r = 0; p.given != nullptr && r < p.rows; ++r)
    if (p.given[r] >= 0) all.push_back({p.given[r], r});
  std::sort(all.begin(), all.end(), [](Given a, Given b) { return a.token < b.token; });
  return all;
}

// The logits of `rows` rows from `first` on for the panel of tokens from `column` on.
HWY_INLINE void PanelLogits(const TokenRows& p, const LeftRows& left, int64_t column, int64_t first,
                            int64_t rows, float* block) {
  const int64_t there = std::min(PackedMatrix::panel, p.matrix->columns() - column);
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(p.matrix->bias(column), PackedMatrix::panel, block + r * PackedMatrix::panel);
  AddPanel(*p.matrix, column, left, first, rows, {block, PackedMatrix::panel});
  for (int64_t r = 0; r < rows && there < PackedMatrix::panel; ++r)
    std::fill(block + r * PackedMatrix::panel + there, block + (r + 1) * PackedMatrix::panel,
              kNever);
}

void Finish(const TokenRows& p, const std::vector<TokenRow>& rows) {
  const int64_t tokens = p.matrix->columns();
  for (int64_t r = 0; r < p.rows; ++r) {
    const float sum = rows[static_cast<size_t>(r)].log_sum();
    for (int64_t n = 0; n < p.best; ++n) p.log_probabilities[r * p.best + n] -= sum;
    if (p.all == nullptr) continue;
    float* all = p.all + r * tokens;
    for (int64_t t = 0; t < tokens; ++t) all[t] -= sum;
  }
}

void AllTokenRows(const TokenRows& p) {
  std::vector<TokenRow> rows;
  rows.reserve(static_cast<size_t>(p.rows));
  for (int64_t r = 0; r < p.rows; ++r) rows.emplace_back(p, r);
  const std::vector<Given> given = GivenTokens(p);
  std::vector<float> of_given(given.size());
  size_t next = 0;
  HWY_ALIGN float block[kPackedRows * PackedMatrix::panel];
  const int64_t tokens = p.matrix->columns();
  const LeftRows left(*p.matrix, p.rows, p.a, p.a_stride);
  for (int64_t column = 0; column < tokens; column += PackedMatrix::panel) {
    const int64_t there = std::min(PackedMatrix::panel, tokens - column);
    size_t end = next;
    while (end < given.size() && given[end].token < column + there) ++end;
    for (int64_t first = 0; first < p.rows; first += kPackedRows) {
      const int64_t count = std::min(kPackedRows, p.rows - first);
      PanelLogits(p, left, column, first, count, block);
      for (int64_t r = 0; r < count; ++r) {
        const float* logits = block + r * PackedMatrix::panel;
        rows[static_cast<size_t>(first + r)].add(logits, column);
        if (p.all != nullptr) std::copy_n(logits, there, p.all + (first + r) * tokens + column);
      }
      for (size_t n = next; n < end; ++n)
        if (given[n].row >= first && given[n].row < first + count)
          of_given[n] =
              block[(given[n].row - first) * PackedMatrix::panel + given[n].token - column];
    }
    next = end;
  }
  for (size_t n = 0; n < given.size(); ++n) {
    float* values = p.log_probabilities + given[n].row * p.best;
    std::fill_n(values, p.best, kNever);
    values[0] = of_given[n];
    p.tokens[given[n].row * p.best] = given[n].token;
  }
  Finish(p, rows);
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
