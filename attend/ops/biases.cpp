#include "attend/ops/biases.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {

using at::Tensor;

Bias operator+(const Bias& a, const Bias& b) {
  Bias sum = a;
  sum.terms.insert(sum.terms.end(), b.terms.begin(), b.terms.end());
  return sum;
}

Bias dense_bias(Tensor bias) { return {{DenseBias{std::move(bias)}}}; }
Bias alibi(Tensor slopes, int64_t offset) { return {{AlibiBias{std::move(slopes), offset}}}; }
Bias buckets(const BucketBias& bias) { return {{bias}}; }
Bias relative_keys(Tensor table, int64_t offset) {
  return {{RelativeKeysBias{std::move(table), offset}}};
}
Bias gaussian(Tensor centres, Tensor widths) {
  return {{GaussianBias{std::move(centres), std::move(widths)}}};
}
Bias grid(Tensor table) { return {{GridBias{std::move(table)}}}; }

Tensor alibi_slopes(int64_t heads) {
  if (heads < 1) fail("[alibi_slopes] heads is {}; it must be 1 or more", heads);
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  const auto slope = [](int64_t head, int64_t of) {
    return std::exp2(-8.0 * static_cast<double>(head) / static_cast<double>(of));
  };
  std::vector<double> slopes;
  slopes.reserve(static_cast<size_t>(heads));
  for (int64_t h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  for (int64_t h = 1; power + h <= heads; ++h) slopes.push_back(slope(2 * h - 1, 2 * power));
  return at::from_blob(slopes.data(), {heads}, at::kDouble).to(at::kFloat);
}

Tensor distance_buckets(const Tensor& distance, int64_t count, bool bidirectional,
                        int64_t maximum_distance) {
  const int64_t own = bidirectional ? count / 2 : count, exact = own / 2;
  if (exact < 1 || maximum_distance <= exact)
    fail(
        "[bias buckets] {} buckets to a maximum distance of {}; there must be {} or more, and a "
        "maximum distance above {}",
        count, maximum_distance, bidirectional ? 4 : 2, exact);
  const Tensor far = bidirectional ? distance.abs() : distance.neg().clamp_min(0);
  // float32 as in the published models, whose weights depend on which side of a boundary rounds.
  const Tensor grown = (far.clamp_min(1).to(at::kFloat) / static_cast<double>(exact)).log() /
                       std::log(static_cast<double>(maximum_distance) / exact) *
                       static_cast<double>(own - exact);
  const Tensor wide = (grown.to(at::kLong) + exact).clamp_max(own - 1);
  const Tensor bucket = at::where(far < exact, far, wide);
  return bidirectional ? bucket + (distance > 0).to(at::kLong) * own : bucket;
}

const std::vector<BiasRow>& bias_table() {
  static const std::vector<BiasRow> table = {
      {"dense",
       "b_ij",
       "any learned or given bias",
       {{"bias", "[batch, heads, queries, keys], axes of 1 broadcast", "the bias"}}},
      {"alibi",
       "-m |i - j|",
       "Press et al. 2022",
       {{"slopes", "[heads]", "m, positive: nearer keys weigh more"}}},
      {"buckets",
       "t[bucket(j - i)]",
       "Raffel et al. 2020, 2.1",
       {{"table", "[heads, buckets] or [buckets]", "t, a number a bucket of distances"}}},
      {"relative_keys",
       "q_i . r[clip(j - i, -L, L) + L]",
       "Shaw et al. 2018, eq. 4",
       {{"table", "[heads, 2 L + 1, attention_depth] or without heads", "r, a vector a distance"}}},
      {"gaussian",
       "-(j - p_i)^2 / (2 s_i^2)",
       "Luong et al. 2015, eq. 10",
       {{"centres", "[batch, heads, queries]", "p, where a query looks"},
        {"widths", "[batch, heads, queries]", "s, positive: how far around"}}},
      {"grid",
       "t[y_j - y_i][x_j - x_i]",
       "Cordonnier et al. 2020; Liu et al. 2021, eq. 4",
       {{"table", "[heads, 2 height - 1, 2 width - 1] or without heads",
         "t, a number a pair of row and column distances"}}},
  };
  return table;
}

}  // namespace attend
