#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attend/kernels/attention.h"

namespace attend {

// Weights [..., Tq, Tk] and the normaliser of each row [..., Tq], also AttentionResult::lse.
struct Normalised {
  at::Tensor weights;
  at::Tensor normaliser;
};

// Inputs of a row other than the scores.
struct NormaliserOptions {
  double temperature = 1;
  uint64_t seed = 0;         // 0: nothing is drawn
  at::Tensor previous = {};  // weights of the previous query, shaped as the scores, or undefined
  std::optional<double> number = {};  // NormaliserRow::number, if the text has one
  at::Tensor parameter = {};          // NormaliserRow::parameter; broadcasts to the scores
};

// A number after the name of a row, besides a temperature.
struct NormaliserNumber {
  std::string_view letter;  // in the syntax of the row
  double least = 0, largest = 0;
  std::optional<double> absent = {};  // value if it is left out; unset: it has another meaning
  bool is_whole = false;
};

// One number per head that a row reads. It can be trained.
struct NormaliserParameter {
  std::string_view name;
  std::string_view meaning;
  bool by_number = false;  // the number of the syntax fixes it
  double first = 0;        // if nothing is given, and at the beginning of training; unused if
                           // by_number
  // Range of a trained one, which is kept in it by a sigmoid; equal: any number.
  double least = 0, largest = 0;
};

// How the scores are trained.
enum class Training {
  gradient,  // by the gradient of the weights
  reward,    // no gradient reaches the scores; the reward of the drawn keys trains them (Williams
             // 1992)
  none,
};

// Meaning of AttentionResult::lse.
enum class Lse {
  logarithm,  // logarithm of the sum that divides the weights
  threshold,  // t_i: weights depend on the excess of scores above it
  zero,
};

// How to merge results over two disjoint sets of keys.
enum class Merge {
  none,        // not mergeable: the row needs all its keys at once
  logarithms,  // contexts weighted by exp of their lse; the merged lse is the log of the sum
  sums,        // contexts added up
};

// Use of the number T in the syntax of a row.
enum class Temperature {
  none,      // the row takes no number
  scores,    // all scores, before the row receives them
  gradient,  // the scores at which the gradient is taken; the row itself divides
};

// Range of the weights for any scores.
enum class WeightRange {
  shares,   // 0 or more; the weights of a query sum to 1, or to less if the row permits it
  between,  // from 0 to 1, independent of each other
  numbers,  // any number, including negative ones
};

// Random draws during training, decided by a seed.
enum class Draws {
  nothing,
  keys,   // the key of each query; without a seed the key of the largest score
  noise,  // noise that the model adds to the scores; it trains them to be far from 0
};

// One row of the table of normalisers.
struct NormaliserRow {
  std::string_view name;
  std::string_view syntax;  // as read by Normaliser; T is 1e-18 to 1e18, by default 1
  std::string_view formula;
  std::string_view source;
  // Normalises scores, which are -inf outside the scope. `empty` has the shape of the scores with
  // one key and marks the rows that are all -inf (weights 0, normaliser -inf); undefined if there
  // are none.
  Normalised (*normalise)(const at::Tensor& scores, const at::Tensor& empty,
                          const NormaliserOptions&);
  Lse lse = Lse::logarithm;
  Merge merge = Merge::none;
  std::optional<kernels::Normaliser> kernel = {};  // kernel of the row; unset: composed path
  bool takes_sink = false;  // whether a score without a value may take part in the sum
  bool sums_to_one = true;  // weights of a query with a key and without a sink sum to 1
  WeightRange range = WeightRange::shares;
  bool shift_invariant = true;       // adding a constant to all scores of a query changes no weight
  bool sequential = false;           // a row needs the weights of the previous one
  bool order_dependent = false;      // the weight of a key depends on the keys before it
  bool twice_differentiable = true;  // otherwise the second derivative is an Error
  // Weights are non-negative scores over their sum and need not be formed.
  bool running_sums = false;
  Temperature temperature = Temperature::none;
  std::optional<NormaliserNumber> number = {};
  std::optional<NormaliserParameter> parameter = {};
  // Returns factors [B, H, Tq] of the scores before the soft cap and the bias; null: 1. `keys` has
  // the number of keys in the scope of each query, [B, H, Tq]; parameter: [1, H, 1].
  at::Tensor (*factor)(const at::Tensor& keys, const at::Tensor& parameter,
                       const std::optional<double>& number) = nullptr;
  Draws draws = Draws::nothing;
  Training training = Training::gradient;
  double first_offset = 0;  // initial value of a trained offset that is added to every score
  std::string_view in_evaluation = {};  // row for a trained model; empty: the same row
};

// All normalisers, in the order of the documentation.
const std::vector<NormaliserRow>& normaliser_table();

// A row of the table, written in its syntax: "softmax", "temperature:0.5". Error on an unknown name
// (with the nearest one) and on an invalid number. Draws of hard and gumbel depend only on the
// seed; attention() and attention_weights() agree. With seed 0 they take the key of the largest
// score, as at inference. `parameter`: the row's parameter, [H] or one number, differentiable;
// undefined: the row's first value. Error if the row takes no parameter, or if the text fixes it.
class Normaliser {
 public:
  Normaliser(std::string_view text = "softmax", uint64_t seed = 0,
             const at::Tensor& parameter = {});
  Normaliser(const char* text, uint64_t seed = 0) : Normaliser(std::string_view(text), seed) {}

  const NormaliserRow& row() const { return *row_; }
  // Without the parameter, which depends on the number of heads.
  const NormaliserOptions& options() const { return options_; }

  const at::Tensor& parameter() const { return parameter_; }
  Normaliser with_parameter(const at::Tensor& parameter) const;

 private:
  const NormaliserRow* row_;
  NormaliserOptions options_;
  at::Tensor parameter_;
};

// Whether training may choose the row's parameter: the row has one that the text does not fix.
bool has_free_parameter(const Normaliser& normaliser);

// The row's parameter if it is not given. Requires a row with a parameter.
double parameter_if_absent(const Normaliser& normaliser);

}  // namespace attend
