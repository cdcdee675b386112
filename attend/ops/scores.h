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

// Named tensors of a score, with the names of its formula: W, W_q, v, beta.
using Parameters = std::map<std::string, at::Tensor, std::less<>>;

// Pairwise form of a score after its queries and keys are mapped, and f of the additive form.
using kernels::Activation;
using kernels::Family;

// Results of the maps of the dot family: any numbers, or logarithms of features. Features, and
// therefore their scores, are never negative.
enum class Features { any, logarithms };

// The slope of leaky_relu below 0 (Brody et al. 2022).
inline constexpr double leaky_slope = kernels::Score<double>{}.negative_slope;

// Length of an axis of a parameter.
enum class Axis { query_depth, key_depth, attention_depth, keys, filters, filter_width };

// Reader of a parameter.
enum class Reader {
  maps,   // only the maps of queries and keys
  pairs,  // the family, for comparing mapped queries and keys; at most one parameter per row
  past,   // map_past
};

struct ParameterRow {
  std::string_view name;
  std::vector<Axis> shape;  // empty: one number. Any parameter may have a leading head axis.
  bool required;  // false: `meaning` names the default; an absent [attention depth, D] is the
                  // identity, and D is then the attention depth
  std::string_view meaning;
  bool trained = true;  // false: drawn at random and not trained
  Reader reader = Reader::maps;
};

// One row of the score table. A score is a family and the maps of its queries and keys.
struct ScoreRow {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  std::optional<Family> family;  // unset: the mapped query holds one score per key
  std::vector<ParameterRow> parameters = {};
  // nullptr: identity.
  at::Tensor (*map_query)(const at::Tensor& query, const Parameters&) = nullptr;
  at::Tensor (*map_key)(const at::Tensor& key, const Parameters&) = nullptr;
  bool query_is_affine = false;  // map_query computes W q + b
  Activation activation = Activation::tanh;
  double (*scale)(int64_t depth) = nullptr;  // factor of the family's sum; nullptr: 1
  // Term that the weights of earlier queries add to the mapped keys: [B, H, Tk, A], or undefined
  // for none, from a past of three axes. nullptr: queries do not look back.
  at::Tensor (*map_past)(const PastWeights& past, const Parameters&) = nullptr;
  Features features = Features::any;
  // Features without logarithms, which keeps digits that exp of large logarithms would lose;
  // nullptr: exp.
  at::Tensor (*exact_features)(const at::Tensor& x) = nullptr;
  // Without optional parameters the maps are the identity; no scale, no past. Each family has one
  // such row, the additive family one per activation.
  bool is_plain = false;

  // Whether a score is a multiple of the product of query and key, which have no maps.
  bool compares_vectors() const {
    return family == Family::dot && parameters.empty() && map_query == nullptr &&
           map_key == nullptr && map_past == nullptr;
  }
};

// All scores, in the order of the documentation.
const std::vector<ScoreRow>& score_table();

// Name of an axis in documents and messages, for example "query_depth".
std::string_view axis_name(Axis axis);

// Row of this name; Error with the nearest name otherwise.
const ScoreRow& score_row(std::string_view name);

// A score with its parameters: Score("additive", {{"v", v}}). The constructor raises an Error on
// unknown names and parameters, missing parameters, wrong numbers of axes and inconsistent axes. An
// undefined tensor counts as absent.
class Score {
 public:
  Score(std::string_view name = "scaled_dot", Parameters parameters = {});
  Score(const char* name) : Score(std::string_view(name)) {}

  const ScoreRow& row() const { return *row_; }
  const Parameters& parameters() const { return parameters_; }
  // Number of heads of the parameters with a head axis; unset if there are none.
  std::optional<int64_t> heads() const { return heads_; }

  // Maps into the form of the family: [..., T, D] -> [..., T, A]; with parameters of H heads, [B,
  // H, T, D] -> [B, H, T, A]. With float32 parameters, 16-bit inputs become float32. Error on
  // another depth, dtype, device or number of heads.
  at::Tensor map_query(const at::Tensor& query) const;
  at::Tensor map_key(const at::Tensor& key) const;

  // The maps in parts, for callers that scale the scores instead of the queries, or shift
  // logarithms of features before exp.
  at::Tensor query_before_exp(const at::Tensor& query) const;
  at::Tensor key_before_exp(const at::Tensor& key) const;
  double scale(int64_t query_depth) const;

  // Whether the maps return their argument unchanged.
  bool leaves_inputs() const;

  // Parameter that pairs read, v of the additive family; undefined if there is none.
  at::Tensor of_pairs() const;

  // The score of mapped queries and keys: mapping again changes nothing. Allows mapping keys once
  // for many queries. Keeps the parameters of the pairs and of map_past.
  Score mapped() const;

 private:
  at::Tensor exact_features(const at::Tensor& x, const char* what, Axis depth) const;

  const ScoreRow* row_;
  Parameters parameters_;
  std::optional<int64_t> heads_;
};

// Score of the mapped queries and keys of `row`: the plain row of its family, with the parameter
// that pairs read, undefined if there is none.
Score pair_score(const ScoreRow& row, const at::Tensor& of_pairs = {});

// Error if mapped queries and keys do not fit each other or the score.
void check_pairs(const Score& score, const at::Tensor& mapped_query, const at::Tensor& mapped_key);

// Pairwise scores of mapped queries [..., Tq, A] and keys [..., Tk, A]: [..., Tq, Tk], without a
// past. A location score takes queries [..., Tq, A] with A at least Tk and ignores the contents of
// the keys.
at::Tensor pairwise_scores(const Score& score, const at::Tensor& mapped_query,
                           const at::Tensor& mapped_key);

}  // namespace attend
