#include "attend/ops/normalisers.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/base/find_row.h"
#include "attend/ops/normalisers-inl.h"

namespace attend {
namespace {

using at::Tensor;

Normalised softmax(const Tensor& scores, const Tensor& empty, const NormaliserOptions&) {
  const Tensor finite = without_empty(scores, empty);
  return with_empty(finite.softmax(-1), log_sum_exp(finite), empty);
}

// Rows without a normaliser: it is 0.
Normalised elementwise(const Tensor& weights, const Tensor& scores, const Tensor& empty) {
  return with_empty(weights, zero_of_each_row(scores), empty);
}

Normalised sigmoid(const Tensor& scores, const Tensor& empty, const NormaliserOptions&) {
  return elementwise(scores.sigmoid(), scores, empty);
}

Tensor in_scope(const Tensor& scores) { return scores.masked_fill(scores == minus_infinity, 0.0); }

Normalised none(const Tensor& scores, const Tensor& empty, const NormaliserOptions&) {
  return elementwise(in_scope(scores), scores, empty);
}

// A row without keys, or with scores that have all underflowed, is not divided.
Normalised linear(const Tensor& scores, const Tensor&, const NormaliserOptions&) {
  const Tensor kept = in_scope(scores);
  const Tensor sum = kept.sum(-1, true), none_left = sum < least_sum(scores.scalar_type());
  const Tensor divisor = sum.masked_fill(none_left, 1.0);
  return {kept.masked_fill(none_left, 0.0) / divisor,
          divisor.log().masked_fill(none_left, minus_infinity).squeeze(-1)};
}

// Scores of a row in descending order, less the largest, and limited to keep sums of squares
// finite. Scores 4 below the largest have weight 0 in every sparse normaliser.
Tensor sorted_from_largest(const Tensor& scores) {
  const Tensor sorted = std::get<0>(scores.detach().sort(-1, /*descending=*/true));
  return (sorted - sorted.narrow(-1, 0, 1)).clamp_min_(-4.0);
}

Tensor counts(const Tensor& sorted) { return at::arange(1, sorted.size(-1) + 1, sorted.options()); }

// Keys with a score among the `size` largest, [..., Tq, 1]. Equal scores are all in or all out. NaN
// sorts as the largest, and no score is less than NaN: the whole row is in the support and becomes
// NaN.
struct Support {
  Tensor without;  // true for keys outside the support
  Tensor size;     // [..., Tq, 1]

  Support(const Tensor& scores, const Tensor& counted) {
    const Tensor sorted = std::get<0>(scores.detach().sort(-1, /*descending=*/true));
    const Tensor last = (counted - 1).clamp_min(0).to(at::kLong);
    without = scores.detach() < sorted.gather(-1, last);
    size = (scores.size(-1) - without.sum(-1, true)).to(scores.scalar_type());
  }

  Tensor of(const Tensor& x) const { return x.masked_fill(without, 0.0); }
};

// On its support, the threshold of a row is a smooth function of the scores; autograd
// differentiates it.
Normalised sparsemax(const Tensor& scores, const Tensor& empty, const NormaliserOptions& options) {
  const Tensor finite = without_empty(scores, empty);
  if (finite.size(-1) == 0) return softmax(scores, empty, options);
  const Tensor sorted = sorted_from_largest(finite), k = counts(sorted);
  const Support support(finite, (k * sorted + 1 > sorted.cumsum(-1)).sum(-1, /*keepdim=*/true));
  const Tensor top = finite.detach().amax(-1, true);
  const Tensor moved = support.of(finite - top);
  const Tensor threshold = (moved.sum(-1, true) - 1) / support.size;
  return with_empty(support.of(moved - threshold), (threshold + top).squeeze(-1), empty);
}

// Number of sorted halves z with weight: z_k is at least the threshold of the first k.
Tensor entmax_size(const Tensor& z) {
  const Tensor k = counts(z);
  const Tensor mean = z.cumsum(-1) / k;
  const Tensor spread = z.square().cumsum(-1) - k * mean.square();
  const Tensor threshold = mean - ((1 - spread) / k).clamp_min(0.0).sqrt();
  return (threshold <= z).sum(-1, /*keepdim=*/true);
}

Normalised entmax15(const Tensor& scores, const Tensor& empty, const NormaliserOptions& options) {
  const Tensor finite = without_empty(scores, empty);
  if (finite.size(-1) == 0) return softmax(scores, empty, options);
  const Support support(finite, entmax_size(sorted_from_largest(finite) / 2));
  const Tensor top = finite.detach().amax(-1, true);
  const Tensor z = support.of(finite - top) / 2;
  const Tensor mean = z.sum(-1, true) / support.size;
  const Tensor spread = support.of(z - mean).square().sum(-1, true);
  const Tensor threshold = mean - ((1 - spread) / support.size).sqrt();
  return with_empty(support.of(z - threshold).square(), (2 * threshold + top).squeeze(-1), empty);
}

// The number n of keys in scope: s ln n, or 1 + s ln(1 + floor(n / L)) with a length L.
Tensor scalable_factor(const Tensor& keys, const Tensor& parameter,
                       const std::optional<double>& length) {
  if (!length) return parameter * keys.clamp_min(1.0).log();
  return 1 + parameter * (keys / *length).floor().log1p();
}

NormaliserRow scalable_row() {
  return {.name = "scalable",
          .syntax = "scalable:L",
          .formula =
              "w_ij = softmax_j(r_i score_ij + bias_ij), r_i = s ln n_i, n_i keys in scope; "
              "with L: r_i = 1 + s ln(1 + floor(n_i / L))",
          .source = "Nakanishi 2025; with L: Llama 4, 2025",
          .normalise = softmax,
          .kernel = kernels::Normaliser::softmax,
          .takes_sink = true,
          .number = NormaliserNumber{"L", 1, 1e9},
          .parameter =
              NormaliserParameter{
                  .name = "scale", .meaning = "s, by which scores grow with ln n", .first = 0.43},
          .factor = scalable_factor};
}

// Rows that weigh every key by its score or by exp of its score.
std::vector<NormaliserRow> whole_rows() {
  using kernels::Normaliser;
  return {
      {.name = "softmax",
       .syntax = "softmax",
       .formula = "w_ij = exp(s_ij) / sum_j exp(s_ij)",
       .source = "Bahdanau et al. 2015, eq. 6",
       .normalise = softmax,
       .merge = Merge::logarithms,
       .kernel = Normaliser::softmax,
       .takes_sink = true},
      {.name = "temperature",
       .syntax = "temperature:T",
       .formula = "w_ij = exp(s_ij / T) / sum_j exp(s_ij / T)",
       .source = "Hinton et al. 2015, eq. 1",
       .normalise = softmax,
       .merge = Merge::logarithms,
       .kernel = Normaliser::softmax,
       .takes_sink = true,
       .temperature = Temperature::scores},
      {.name = "sigmoid",
       .syntax = "sigmoid",
       .formula = "w_ij = 1 / (1 + exp(-s_ij))",
       .source = "Ramapuram et al. 2024, eq. 3",
       .normalise = sigmoid,
       .lse = Lse::zero,
       .merge = Merge::sums,
       .kernel = Normaliser::sigmoid,
       .sums_to_one = false,
       .range = WeightRange::between,
       .shift_invariant = false},
      {.name = "none",
       .syntax = "none",
       .formula = "w_ij = s_ij",
       .source = "unnormalised",
       .normalise = none,
       .lse = Lse::zero,
       .merge = Merge::sums,
       .kernel = Normaliser::none,
       .sums_to_one = false,
       .range = WeightRange::numbers,
       .shift_invariant = false},
  };
}

// Rows that give weight 0 to small scores, and rows with scores as weights.
std::vector<NormaliserRow> sparse_and_linear_rows() {
  using kernels::Normaliser;
  return {
      {.name = "sparsemax",
       .syntax = "sparsemax",
       .formula = "w_ij = max(0, s_ij - t_i), t_i so that sum_j w_ij = 1",
       .source = "Martins and Astudillo 2016, eq. 3",
       .normalise = sparsemax,
       .lse = Lse::threshold,
       .kernel = Normaliser::sparsemax},
      {.name = "entmax15",
       .syntax = "entmax15",
       .formula = "w_ij = max(0, (s_ij - t_i) / 2)^2, t_i so that sum_j w_ij = 1",
       .source = "Peters et al. 2019, alpha = 1.5",
       .normalise = entmax15,
       .lse = Lse::threshold,
       .kernel = Normaliser::entmax15},
      {.name = "linear",
       .syntax = "linear",
       .formula = "w_ij = s_ij / sum_j s_ij, of scores above 0",
       .source = "Katharopoulos et al. 2020, eq. 4",
       .normalise = linear,
       .merge = Merge::logarithms,
       .shift_invariant = false,
       .running_sums = true},
  };
}

const NormaliserRow& normaliser_row(std::string_view name) {
  return find_row(normaliser_table(), "normaliser", name);
}

// Scores with a finite square in float remain finite after division by a T in this range.
constexpr double largest_temperature = 1e18;

double parse_temperature(std::string_view digits, const NormaliserRow& row) {
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= 1 / largest_temperature) ||
      number > largest_temperature)
    fail("normaliser {}: T is {}; it must be a number from {} to {}, as in {}:0.5", row.syntax,
         in_quotes(digits), 1 / largest_temperature, largest_temperature, row.name);
  return number;
}

double parse_number(std::string_view digits, const NormaliserRow& row) {
  const NormaliserNumber& wanted = row.number.value();
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= wanted.least) || number > wanted.largest ||
      (wanted.is_whole && number != std::floor(number)))
    fail("normaliser {}: {} is {}; it must be a {} from {} to {}, as in {}:2", row.syntax,
         wanted.letter, in_quotes(digits), wanted.is_whole ? "whole number" : "number",
         wanted.least, wanted.largest, row.name);
  return number;
}

}  // namespace

const std::vector<NormaliserRow>& normaliser_table() {
  static const std::vector<NormaliserRow> table = [] {
    std::vector<NormaliserRow> all = whole_rows();
    all.push_back(scalable_row());
    for (const auto& more : {sparse_and_linear_rows(), later_rows(), one_key_rows()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return table;
}

Normaliser::Normaliser(std::string_view text, uint64_t seed, const Tensor& parameter) {
  const size_t colon = text.find(':');
  row_ = &normaliser_row(text.substr(0, colon));
  options_.seed = seed;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    if (row_->temperature != Temperature::none)
      options_.temperature = parse_temperature(digits, *row_);
    else if (row_->number)
      options_.number = parse_number(digits, *row_);
    else
      fail("normaliser {}: {} takes no number; write {}", in_quotes(text), row_->name,
           row_->syntax);
  }
  if (!parameter.defined()) return;
  if (!has_free_parameter(*this))
    fail("[attention] normaliser {} takes no parameter; leave it out, or take entmax or scalable",
         in_quotes(text));
  parameter_ = parameter;
}

Normaliser Normaliser::with_parameter(const Tensor& parameter) const {
  Normaliser other = *this;
  other.parameter_ = parameter;
  return other;
}

bool has_free_parameter(const Normaliser& normaliser) {
  const auto& parameter = normaliser.row().parameter;
  return parameter && !(parameter->by_number && normaliser.options().number);
}

double parameter_if_absent(const Normaliser& normaliser) {
  const NormaliserRow& row = normaliser.row();
  return row.parameter.value().by_number
             ? normaliser.options().number.value_or(row.number.value().absent.value())
             : row.parameter->first;
}

}  // namespace attend
