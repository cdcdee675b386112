#include <ATen/CPUGeneratorImpl.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "attend/explain/attention_methods-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t integration_steps = 64, most_integration_steps = 1024;
constexpr int64_t noisy_copies = 32;
constexpr double noise_share = 0.15;   // of the range of the input (Smilkov et al. 2017, 4.1)
constexpr int64_t exact_outputs = 64;  // a Jacobian of more rows is measured by so many directions

Tensor derivative(const Tensor& output, const Tensor& input) {
  const Tensor result = torch::autograd::grad({output.sum()}, {input}, {}, /*retain_graph=*/true,
                                              /*create_graph=*/false, /*allow_unused=*/true)[0];
  return result.defined() ? result : at::zeros_like(input);
}

// The vectors of the source's tokens, among the others that enter the network.
Tensor of_source(const Subject& subject, const Tensor& vectors) {
  const int64_t before =
      subject.network().top_vectors(subject.source_length(), subject.target_length()).before_source;
  // A class token is added behind the input, a start before it.
  const int64_t first = vectors.size(1) == subject.source_length() ? 0 : before;
  return vectors.narrow(1, first, subject.source_length());
}

// Traces copies of the subject whose source vectors `change` [rows, S, depth] makes new.
NetworkTrace trace_changed(const Subject& subject, int64_t rows,
                           const std::function<Tensor(const Tensor& source)>& change) {
  TraceOptions options{.gradients = true, .attentions = false};
  options.input = [&](const Tensor& input) {
    Tensor result = input.detach().clone();
    Tensor source = of_source(subject, result);
    source.copy_(change(source.clone()));
    return result;
  };
  return trace_network(subject.network(), repeated(subject.batch, rows), options);
}

// The gradients [T, S, depth] of each token's log probability.
Tensor source_gradients(const Subject& subject, const NetworkTrace& trace) {
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < subject.target_length(); ++t)
    rows.push_back(
        of_source(subject, derivative(trace.log_probabilities.select(1, t), trace.input))[0]);
  return float64_on_cpu(at::stack(rows));
}

// What enters the network where nothing is known of the source, unknown tokens or frames of zeros,
// and the log probabilities [T] then. Vectors of zero would not do, for a layer that normalises
// them jumps there.
std::pair<Tensor, Tensor> blank_source(const Subject& subject) {
  Batch blank = subject.batch;
  blank.source = blank.source.is_floating_point()
                     ? at::zeros_like(blank.source)
                     : at::full_like(blank.source, Vocabulary::unknown);
  const NetworkTrace trace = trace_network(subject.network(), blank, {.attentions = false});
  return {of_source(subject, trace.input).detach(), float64_on_cpu(trace.log_probabilities[0])};
}

// Places between 0 and 1 and their weights, by which a smooth function is integrated far better
// than by equal steps: Gauss and Legendre's, the roots of a polynomial P_n by Newton's method.
std::pair<Tensor, Tensor> legendre_places(int64_t count) {
  const Tensor places = at::empty({count}, at::kDouble), weights = at::empty({count}, at::kDouble);
  const auto n = static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (n + 0.5));
    double slope = 0;
    for (double moved = 1; std::abs(moved) > 1e-15;) {
      double last = 1, value = x;  // P_0 and P_1
      for (int64_t k = 2; k <= count; ++k) {
        const auto d = static_cast<double>(k);
        last = std::exchange(value, ((2 * d - 1) * x * value - (d - 1) * last) / d);
      }
      slope = n * (x * value - last) / (x * x - 1);
      moved = value / slope;
      x -= moved;
    }
    places[i] = (1 + x) / 2;
    weights[i] = 1 / ((1 - x * x) * slope * slope);
  }
  return {places, weights};
}

// The integral of the gradients along the way from `blank`, times it: [T, S].
Tensor integrated_along(const Subject& subject, const Tensor& blank, const Tensor& way,
                        int64_t steps) {
  const auto [places, shares] = legendre_places(steps);
  const at::Tensor sum =
      at::zeros({subject.target_length(), way.size(1), way.size(2)}, at::kDouble);
  for (int64_t first = 0; first < steps; first += integration_steps) {
    const Tensor along = places.narrow(0, first, integration_steps).view({-1, 1, 1});
    const Tensor weights = shares.narrow(0, first, integration_steps).view({-1, 1, 1});
    const NetworkTrace path = trace_changed(subject, integration_steps, [&](const Tensor& source) {
      return blank + (source - blank) * along.to(source.options());
    });
    for (int64_t t = 0; t < subject.target_length(); ++t) {
      const Tensor slope = derivative(path.log_probabilities.select(1, t), path.input);
      sum[t] += (float64_on_cpu(of_source(subject, slope)) * weights).sum(0);
    }
  }
  return (sum * way).sum(2);
}

at::Generator fixed_draws() { return at::make_generator<at::CPUGeneratorImpl>(1); }

}  // namespace

Tensor gradient(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  return source_gradients(subject, trace).norm(2, 2);
}

Tensor gradient_x_input(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  const Tensor input = float64_on_cpu(of_source(subject, trace.input));
  return (source_gradients(subject, trace) * input).sum(2);
}

// Jain & Wallace 2019, 4.1: the gradient by the token, with the weights of attention held.
Tensor held_gradient(const Subject& subject, const NetworkTrace&, const MethodChoice& choice) {
  TraceOptions options{.gradients = true, .attentions = false};
  options.weights = [](const Site&, size_t, const Tensor& weights) { return weights.detach(); };
  return gradient_x_input(subject, trace_network(subject.network(), subject.batch, options), choice)
      .abs();
}

// Sundararajan et al. 2017, eq. 3. Where the sum is off by over half of a hundredth of the largest
// difference, the way is sharper than the steps, and is gone in twice as many.
Tensor integrated_gradients(const Subject& subject, const NetworkTrace& trace,
                            const MethodChoice&) {
  const auto [blank, before] = blank_source(subject);
  const Tensor way = float64_on_cpu(of_source(subject, trace.input)) - float64_on_cpu(blank);
  const Tensor difference = float64_on_cpu(trace.log_probabilities[0]) - before;
  for (int64_t steps = integration_steps;; steps *= 2) {
    Tensor parts = integrated_along(subject, blank, way, steps);
    const double off = (parts.sum(1) - difference).abs().max().item<double>();
    if (steps >= most_integration_steps || off <= 0.005 * difference.abs().max().item<double>())
      return parts;
  }
}

Tensor smoothed_gradient(const Subject& subject, const NetworkTrace&, const MethodChoice&) {
  const at::Generator draws = fixed_draws();
  const NetworkTrace noisy = trace_changed(subject, noisy_copies, [&](const Tensor& source) {
    const Tensor noise = at::randn(source.sizes(), draws, at::kDouble).to(source.options());
    return source + noise_share * (source.max() - source.min()) * noise;
  });
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < subject.target_length(); ++t)
    rows.push_back(
        float64_on_cpu(
            of_source(subject, derivative(noisy.log_probabilities.select(1, t), noisy.input)))
            .mean(0)
            .norm(2, 1));
  return at::stack(rows);
}

// || d log p(. | t) / d x_j ||_F, each row of the Jacobian on a copy of its own. Of many rows the
// mean over random signs u of || J' u ||^2, which is the same.
Tensor jacobian_norms(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  const Tensor possible = at::isfinite(trace.distributions[0][0]).nonzero().squeeze(1);
  const int64_t outputs = possible.size(0), copies = std::min(outputs, exact_outputs);
  const bool exact = copies == outputs;
  const at::Generator draws = fixed_draws();
  const Tensor directions = exact
                                ? at::eye(outputs, at::kDouble)
                                : at::randint(0, 2, {copies, outputs}, draws, at::kDouble) * 2 - 1;
  const NetworkTrace many =
      trace_changed(subject, copies, [](const Tensor& source) { return source; });
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < subject.target_length(); ++t) {
    const Tensor output = many.distributions.select(1, t).index_select(1, possible);
    const Tensor projected = output * directions.to(output.options());
    const Tensor squares =
        float64_on_cpu(of_source(subject, derivative(projected, many.input))).square().sum(2);
    rows.push_back((exact ? squares.sum(0) : squares.mean(0)).sqrt());
  }
  return at::stack(rows);
}

// Selvaraju et al. 2017, eq. 1-2, over the vectors that the last layer reads or, without layers,
// those that convolutions made.
Tensor grad_cam(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  const Tensor& features = trace.layers.empty() ? trace.input : trace.layers.back();
  const Tensor values = float64_on_cpu(of_source(subject, features))[0];
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < subject.target_length(); ++t) {
    const Tensor slope = float64_on_cpu(
        of_source(subject, derivative(trace.log_probabilities.select(1, t), features)))[0];
    rows.push_back(values.matmul(slope.mean(0)).relu());
  }
  return at::stack(rows);
}

// a_tj d log p_t / d a_tj, summed over the heads.
Tensor attention_x_gradient(const Subject& subject, const NetworkTrace& trace,
                            const MethodChoice& choice) {
  const TracedAttention& attention = *answer_attention(trace, choice);
  const std::vector<int64_t> heads = chosen_heads(attention, choice);
  std::vector<Tensor> leaves;
  TraceOptions options{.gradients = true, .attentions = false};
  options.weights = [&](const Site& site, size_t, const Tensor& weights) {
    if (!same_site(site, attention.site)) return Tensor();
    leaves.push_back(weights.detach().requires_grad_());
    return leaves.back();
  };
  const NetworkTrace weighed = trace_network(subject.network(), subject.batch, options);
  const int64_t axis = attention.in_steps() ? 2 : 1;  // of rows, or of heads
  const Tensor weights = float64_on_cpu(at::cat(leaves, axis));
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < subject.target_length(); ++t) {
    const Tensor output = weighed.log_probabilities.select(1, t);
    std::vector<Tensor> slopes;
    slopes.reserve(leaves.size());
    for (const Tensor& leaf : leaves) slopes.push_back(float64_on_cpu(derivative(output, leaf)));
    Tensor product = (weights * at::cat(slopes, axis)).squeeze(0);  // [heads, rows, columns]
    if (!heads.empty()) product = product.narrow(0, heads[0], 1);
    // A decoder's own row of the token; of self-attention all rows lead to the answer.
    const Tensor map = product.sum(0);
    const bool own = attention.site.reads_source && map.size(0) == subject.target_length();
    rows.push_back(source_columns(subject, attention, own ? map[t] : map.sum(0)));
  }
  return at::stack(rows);
}

// How much less probable, in nats, the answer is when the token is not there.
Tensor occlusion(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  const Tensor without =
      float64_on_cpu(answers_of(subject, leave_one_out(subject)).log_probabilities);  // [S, T]
  return (float64_on_cpu(trace.log_probabilities) - without).t();
}

}  // namespace attend
