// Attention in linear time: the cost per token as sequences grow, compared with exact fused
// attention, and the error of the cheaper mechanisms: `./dev bench linear --help`.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/autograd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "attend/mechanisms/length_projection.h"
#include "attend/nn/random_features.h"
#include "attend/ops/attention.h"
#include "bench/measure.h"
#include "bench/report.h"

namespace attend::bench {
namespace {

using at::Tensor;

constexpr int64_t depth = 64, projected = 256;
// Bar of the exponent: linear, with some room for caches that overflow.
constexpr double max_exponent = 1.15;

struct Options {
  bool quick = false, json = false;
};

Score features_score(int64_t features, const at::Generator& generator) {
  return Score("positive_features", {{"omega", orthogonal_features(features, depth, generator)}});
}

// A mechanism for equal numbers of queries and keys.
struct Mechanism {
  std::string name;
  int64_t longest;
  std::function<Tensor(const Tensor& query, const Tensor& key, const Tensor& value)> attend;
};

std::vector<Mechanism> mechanisms(int64_t longest, int64_t longest_exact) {
  const auto by_spec = [](const AttentionSpec& spec) {
    return [spec](const Tensor& q, const Tensor& k, const Tensor& v) {
      return attention(q, k, v, spec).context;
    };
  };
  const auto generator = at::detail::createCPUGenerator(1);
  const Score positive = features_score(depth, generator);
  const auto keys = std::make_shared<LengthProjection>(longest, projected);
  const auto values = std::make_shared<LengthProjection>(longest, projected);
  return {
      {"exact, fused", longest_exact, by_spec({})},
      {"exact, fused, causal", longest_exact, by_spec({.scope = causal()})},
      {"elu_features", longest, by_spec({.score = "elu_features", .normaliser = "linear"})},
      {"elu_features, causal", longest,
       by_spec({.score = "elu_features", .scope = causal(), .normaliser = "linear"})},
      {"positive_features, 64 of them", longest,
       by_spec({.score = positive, .normaliser = "linear"})},
      {"positive_features, 64 of them, causal", longest,
       by_spec({.score = positive, .scope = causal(), .normaliser = "linear"})},
      {fmt::format("length projection to {}", projected), longest,
       [=](const Tensor& q, const Tensor& k, const Tensor& v) {
         return attention(q, keys->forward(k), values->forward(v)).context;
       }},
  };
}

struct Passes {
  Probe forward, both;
};

Passes passes_of(const Mechanism& mechanism, int64_t length) {
  const auto random = [&] { return at::randn({1, 1, length, depth}).requires_grad_(); };
  const Tensor query = random(), key = random(), value = random();
  const Tensor upstream = at::randn({1, 1, length, depth});
  const auto forward = [=] { return mechanism.attend(query, key, value); };
  return {seconds_of(1,
                     [=] {
                       const at::NoGradGuard no_gradient;
                       forward();
                     }),
          seconds_of(1, [=] {
            torch::autograd::grad({forward()}, {query, key, value}, {upstream});
          })};
}

void measure_times(Report& report, const Options& options) {
  const int64_t longest = options.quick ? 16'384 : 65'536;
  const auto all = mechanisms(longest, options.quick ? 4096 : 16'384);
  const double seconds = options.quick ? 0.05 : 0.3;
  std::map<std::string, std::vector<std::pair<double, double>>> forward, both;
  for (int64_t length = 1024; length <= longest; length *= 4) {
    std::vector<Probe> probes;
    std::vector<std::string> names;
    for (const Mechanism& mechanism : all) {
      if (length > mechanism.longest) continue;
      const Passes passes = passes_of(mechanism, length);
      probes.insert(probes.end(), {passes.forward, passes.both});
      names.push_back(mechanism.name);
    }
    const Rounds rounds = take_turns(probes, seconds);
    const auto tokens = static_cast<double>(length);
    for (size_t i = 0; i < names.size(); ++i) {
      const double once = rounds.median(2 * i), twice = rounds.median(2 * i + 1);
      forward[names[i]].emplace_back(tokens, once);
      both[names[i]].emplace_back(tokens, twice);
      report.add(names[i], fmt::format("forward, us a token, T={}", length), 1e6 * once / tokens);
      report.add(names[i], fmt::format("both, us a token, T={}", length), 1e6 * twice / tokens);
    }
  }
  for (const Mechanism& mechanism : all) {
    const auto bar =
        mechanism.longest == longest ? std::optional(ReportBar{max_exponent, false}) : std::nullopt;
    report.add(mechanism.name, "forward, exponent of the length", exponent(forward[mechanism.name]),
               bar);
    report.add(mechanism.name, "both, exponent of the length", exponent(both[mechanism.name]), bar);
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// |approximation - exact| / |exact| of the context.
double relative_error(const Tensor& got, const Tensor& exact) {
  return ((got - exact).norm() / exact.norm()).item<double>();
}

// Each output is the mean of its share of the positions.
Tensor means_of_segments(int64_t to, int64_t from) {
  const Tensor segment = at::floor_divide(at::arange(from) * to, from);
  const Tensor member = (at::arange(to).unsqueeze(1) == segment.unsqueeze(0)).to(at::kFloat);
  return member / member.sum(1, true);
}

void measure_errors(Report& report, const Options& options) {
  const at::NoGradGuard no_gradient;
  const int64_t length = options.quick ? 256 : 1024;
  const int draws = options.quick ? 5 : 15;
  for (const double deviation : {0.25, 0.5, 1.0}) {
    const auto generator = at::detail::createCPUGenerator(2);
    const auto random = [&](double size) {
      return at::randn({1, 1, length, depth}, generator, at::TensorOptions()) * size;
    };
    const Tensor query = random(deviation), key = random(deviation), value = random(1);
    const Tensor exact = attention(query, key, value).context;
    const std::string inputs = fmt::format("inputs of deviation {}", deviation);
    std::vector<std::pair<double, double>> samples;
    for (int64_t features = 16; features <= 1024; features *= 4) {
      std::vector<double> errors;
      for (int draw = 0; draw < draws; ++draw)
        errors.push_back(relative_error(
            attention(query, key, value,
                      {.score = features_score(features, generator), .normaliser = "linear"})
                .context,
            exact));
      samples.emplace_back(static_cast<double>(features), median(errors));
      report.add("positive_features, " + inputs, fmt::format("error, {} features", features),
                 samples.back().second);
    }
    report.add("positive_features, " + inputs, "error, exponent of the features",
               exponent(samples));
    report.add(
        "elu_features, " + inputs, "error",
        relative_error(
            attention(query, key, value, {.score = "elu_features", .normaliser = "linear"}).context,
            exact));
    for (int64_t to = 16; to <= length; to *= 4) {
      std::vector<double> errors;
      for (int draw = 0; draw < draws; ++draw) {
        const LengthProjection keys(length, to), values(length, to);
        errors.push_back(relative_error(
            attention(query, keys.forward(key), values.forward(value)).context, exact));
      }
      const LengthProjection means(length, to);
      means.parameters()[0].copy_(means_of_segments(to, length));
      report.add("length projection, untrained, " + inputs, fmt::format("error, to {}", to),
                 median(errors));
      report.add("length projection, segment means, " + inputs, fmt::format("error, to {}", to),
                 relative_error(attention(query, means.forward(key), means.forward(value)).context,
                                exact));
    }
  }
}

}  // namespace
}  // namespace attend::bench

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  using namespace attend::bench;
  CLI::App app{
      "Linear-time attention, one head of depth 64: microseconds a token from 1,024 to 65,536 with "
      "the exponent of the length, also of exact fused attention, and the error of the context "
      "against exact attention, |difference| / |exact|. Medians; both sides take turns on "
      "one thread, timed by its processor time."};
  Options options;
  app.add_flag("--quick", options.quick, "shorter sequences and fewer turns");
  app.add_flag("--json", options.json,
               "one array of {case, metric, value, bar, met}; bar null: there is none");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  torch::manual_seed(1);
  Report report(options.json);
  measure_times(report, options);
  measure_errors(report, options);
}
