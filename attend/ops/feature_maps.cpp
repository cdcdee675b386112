#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/score_rows-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Katharopoulos et al. 2020, eq. 7: log(elu(x) + 1), which is x for x < 0.
Tensor elu_features(const Tensor& x, const Parameters&) {
  // No clamp: its derivative at 0 depends on LibTorch's version.
  const Tensor above = x > 0;
  return at::where(above, x.masked_fill(above.logical_not(), 0.0).log1p(), x);
}

Tensor exact_elu_features(const Tensor& x) {
  const Tensor above = x > 0;
  return at::where(above, x + 1, x.masked_fill(above, 0.0).exp());
}

// Choromanski et al. 2021, eq. 5: log(exp(omega x - |x|^2 / 2) / sqrt(m)). x is divided by D^(1/4);
// the expected product of features is then exp(q . k / sqrt(D)).
Tensor positive_features(const Tensor& x, const Parameters& parameters) {
  const Tensor& omega = parameters.find("omega")->second;
  // No parameter of the keys determines their depth.
  if (x.size(-1) != omega.size(-1) || omega.size(-2) == 0)
    fail(
        "[attention] parameter omega of score positive_features has shape [{}]; it must have 1 or "
        "more rows as long as the queries and keys are deep, {}",
        fmt::join(omega.sizes(), ", "), x.size(-1));
  const Tensor scaled = x * std::pow(static_cast<double>(x.size(-1)), -0.25);
  const double mean = 0.5 * std::log(static_cast<double>(omega.size(-2)));
  return at::matmul(scaled, omega.transpose(-2, -1)) - scaled.square().sum(-1, true) / 2 - mean;
}

}  // namespace

ScoreRow elu_features_row() {
  return {.name = "elu_features",
          .formula = "phi(q) . phi(k), phi(x) = elu(x) + 1",
          .source = "Katharopoulos et al. 2020, eq. 7",
          .family = Family::dot,
          .map_query = elu_features,
          .map_key = elu_features,
          .features = Features::logarithms,
          .exact_features = exact_elu_features};
}

ScoreRow positive_features_row() {
  return {.name = "positive_features",
          .formula =
              "phi(q / D^1/4) . phi(k / D^1/4), "
              "phi(x)_f = exp(omega_f . x - |x|^2 / 2) / sqrt(m)",
          .source = "Choromanski et al. 2021, eq. 5 (FAVOR+)",
          .family = Family::dot,
          .parameters = {{.name = "omega",
                          .shape = {Axis::attention_depth, Axis::query_depth},
                          .required = true,
                          .meaning = "a random direction for each of m features, not trained",
                          .trained = false}},
          .map_query = positive_features,
          .map_key = positive_features,
          .features = Features::logarithms};
}

}  // namespace attend
