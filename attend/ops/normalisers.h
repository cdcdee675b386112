#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attend/kernels/attention.h"

namespace attend {

// Weights [..., Tq, Tk] and what normalised each row [..., Tq], which is also AttentionResult::lse.
struct Normalised {
  at::Tensor weights;
  at::Tensor normaliser;
};

// What a row is told besides the scores.
struct NormaliserOptions {
  double temperature = 1;
  uint64_t seed = 0;         // 0: nothing is drawn
  at::Tensor previous = {};  // weights of the query before, in the scores' shape; undefined: none
};

// What trains the scores behind the weights.
enum class Training {
  gradient,  // that of the weights
  reward,  // no gradient reaches them; the reward of the keys that were drawn does (Williams 1992)
  none,
};

// What AttentionResult::lse holds.
enum class Lse {
  logarithm,  // of the sum that the weights are divided by
  threshold,  // t_i: weights are what scores have above it
  zero,
};

// How results over two disjoint sets of keys become that over both.
enum class Merge {
  none,        // they do not: the row needs all its keys at once
  logarithms,  // contexts weighted by exp of their lse, of which the whole has the log of the sum
  sums,        // contexts added up
};

// What the number T of the row's syntax divides.
enum class Temperature {
  none,      // the row takes no number
  scores,    // all scores, before the row sees them
  gradient,  // the scores that the row's gradient is taken at; the row does so itself
};

// What a weight may be, whatever the scores are.
enum class WeightRange {
  shares,   // 0 or more; those of a query sum to 1, or to less where the row says so
  between,  // from 0 to 1, each by itself
  numbers,  // any number, below 0 too
};

// What a seed decides while a model trains.
enum class Draws {
  nothing,
  keys,   // the key that a query takes; without a seed that of the largest score
  noise,  // what the model adds to the scores, so that they learn to be far from 0
};

// One row of the table of normalisers.
struct NormaliserRow {
  std::string_view name;
  std::string_view syntax;  // as Normaliser reads it; T is 1e-18 to 1e18, 1 where it is left out
  std::string_view formula;
  std::string_view source;
  // Normalises scores, which are -inf outside the scope. `empty` has their shape with one key and
  // marks the rows that are all -inf (weights 0, normaliser -inf); undefined, there are none.
  Normalised (*normalise)(const at::Tensor& scores, const at::Tensor& empty,
                          const NormaliserOptions&);
  Lse lse = Lse::logarithm;
  Merge merge = Merge::none;
  std::optional<kernels::Normaliser> kernel = {};  // without one the row is composed
  bool takes_sink = false;  // a score without a value may take part in the sum
  bool sums_to_one = true;  // a query's weights do, where it has a key and no sink
  WeightRange range = WeightRange::shares;
  bool shift_invariant = true;       // adding a number to all scores of a query changes no weight
  bool sequential = false;           // a row needs the weights of the one before
  bool order_dependent = false;      // a key's weight depends on the keys before it
  bool twice_differentiable = true;  // else the second derivative is an Error
  // Weights are scores over their sum, where no score may be negative, and need not be formed.
  bool running_sums = false;
  Temperature temperature = Temperature::none;
  Draws draws = Draws::nothing;
  Training training = Training::gradient;
  double first_offset = 0;  // what a trained number that is added to every score begins at
  std::string_view in_evaluation = {};  // the row that takes its place in a trained model; empty:
                                        // it stays
};

// Every normaliser, in the order of the documentation.
const std::vector<NormaliserRow>& normaliser_table();

// A row of the table, written in its syntax: "softmax", "temperature:0.5"; Error with the nearest
// name otherwise, and on a number that is none. What hard and gumbel draw depends on the seed
// alone, so that attention() and attention_weights() agree; with seed 0 they take the key of the
// largest score, as at inference.
class Normaliser {
 public:
  Normaliser(std::string_view text = "softmax", uint64_t seed = 0);
  Normaliser(const char* text, uint64_t seed = 0) : Normaliser(std::string_view(text), seed) {}

  const NormaliserRow& row() const { return *row_; }
  const NormaliserOptions& options() const { return options_; }

 private:
  const NormaliserRow* row_;
  NormaliserOptions options_;
};

}  // namespace attend
