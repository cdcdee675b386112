#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/kernels/attention.h"
#include "attend/ops/past_weights.h"

namespace attend {

// Named tensors of a score, as in its formula: W, W_q, v, beta.
using Parameters = std::map<std::string, at::Tensor, std::less<>>;

// The pairwise form that a score takes once its queries and keys are mapped, and f of the additive
// one.
using kernels::Activation;
using kernels::Family;

// What the maps of a row of the dot family return: any numbers, or the logarithms of features.
// Features are then never negative, and so no score is.
enum class Features { any, logarithms };

// The slope of leaky_relu below 0 (Brody et al. 2022).
inline constexpr double leaky_slope = kernels::Score<double>{}.negative_slope;

// What an axis of a parameter is as long as.
enum class Axis { query_depth, key_depth, attention_depth, keys, filters, filter_width };

// Who reads a parameter.
enum class Reader {
  maps,   // those of queries and keys, and nothing after them
  pairs,  // the family, where it compares what has been mapped; a row has one at most
  past,   // map_past
};

struct ParameterRow {
  std::string_view name;
  std::vector<Axis> shape;  // empty: one number. Any parameter may have a leading axis of heads.
  bool required;            // false: `meaning` says what its absence stands for; an absent
                            // [attention depth, D] is the identity, and then D is that depth
  std::string_view meaning;
  bool trained = true;  // false: drawn at random and left so
  Reader reader = Reader::maps;
};

// One row of the score table. A score is a family and the maps that take queries and keys there.
struct ScoreRow {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  std::optional<Family> family;  // without one the mapped query holds one score for each key
  std::vector<ParameterRow> parameters = {};
  // nullptr: as they are.
  at::Tensor (*map_query)(const at::Tensor& query, const Parameters&) = nullptr;
  at::Tensor (*map_key)(const at::Tensor& key, const Parameters&) = nullptr;
  bool query_is_affine = false;  // map_query gives W q + b
  Activation activation = Activation::tanh;
  double (*scale)(int64_t depth) = nullptr;  // what the family's sum is multiplied by; else 1
  // What the weights of the queries before add to the mapped keys: [B, H, Tk, A], or undefined for
  // nothing, from a past of three axes. nullptr: queries do not look back.
  at::Tensor (*map_past)(const PastWeights& past, const Parameters&) = nullptr;
  Features features = Features::any;
  // The features themselves, where exp of large logarithms would lose digits; nullptr: that.
  at::Tensor (*exact_features)(const at::Tensor& x) = nullptr;
  // The maps change nothing unless optional parameters are there, and nothing is scaled or looks
  // back. Each family has one such row, the additive one for each activation.
  bool is_plain = false;
};

// Every score, in the order of the documentation.
const std::vector<ScoreRow>& score_table();

// "query_depth", as documents and messages call it.
std::string_view axis_name(Axis axis);

// The row of that name; Error with the nearest name otherwise.
const ScoreRow& score_row(std::string_view name);

// A score with its parameters: Score("additive", {{"v", v}}). The constructor refuses unknown names
// and parameters, missing parameters, wrong numbers of axes and axes that disagree. An undefined
// tensor counts as absent.
class Score {
 public:
  Score(std::string_view name = "scaled_dot", Parameters parameters = {});
  Score(const char* name) : Score(std::string_view(name)) {}

  const ScoreRow& row() const { return *row_; }
  const Parameters& parameters() const { return parameters_; }
  // How many heads the parameters with an axis of heads have; none when no parameter has one.
  std::optional<int64_t> heads() const { return heads_; }

  // Maps into the form that the family takes: [..., T, D] -> [..., T, A]; with parameters of H
  // heads, [B, H, T, D] -> [B, H, T, A]. With parameters of float32, 16-bit numbers become float32,
  // too. Error on another depth, dtype, device or number of heads.
  at::Tensor map_query(const at::Tensor& query) const;
  at::Tensor map_key(const at::Tensor& key) const;

  // The same in parts, for callers who multiply the scores instead of the queries, and shift
  // logarithms of features before they take exp.
  at::Tensor query_before_exp(const at::Tensor& query) const;
  at::Tensor key_before_exp(const at::Tensor& key) const;
  double scale(int64_t query_depth) const;

  // Whether the maps return their argument unchanged.
  bool leaves_inputs() const;

  // The parameter that the pairs read, v of the additive family; undefined where there is none.
  at::Tensor of_pairs() const;

  // The score of mapped queries and keys: mapping again changes nothing. Keys that many queries
  // read are mapped once, then scored with this. It keeps what the pairs and map_past need.
  Score mapped() const;

 private:
  at::Tensor exact_features(const at::Tensor& x, const char* what, Axis depth) const;

  const ScoreRow* row_;
  Parameters parameters_;
  std::optional<int64_t> heads_;
};

// The score that compares what the maps of `row` give: the plain row of its family, with the
// parameter that the pairs read, undefined where they read none.
Score pair_score(const ScoreRow& row, const at::Tensor& of_pairs = {});

// Error when mapped queries and keys do not fit each other or the score.
void check_pairs(const Score& score, const at::Tensor& mapped_query, const at::Tensor& mapped_key);

// The pairwise scores of mapped queries [..., Tq, A] and keys [..., Tk, A]: [..., Tq, Tk], as if
// there were no past. A location score takes queries [..., Tq, A] with A at least Tk and ignores
// what the keys hold.
at::Tensor pairwise_scores(const Score& score, const at::Tensor& mapped_query,
                           const at::Tensor& mapped_key);

}  // namespace attend
