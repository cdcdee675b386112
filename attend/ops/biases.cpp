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

}  // namespace attend
