#include <ATen/CPUGeneratorImpl.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/vector_groups-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t integration_steps = 64, max_integration_steps = 1024;
constexpr int64_t least_integration_steps = 8;
constexpr int64_t copies_at_once = 64;
constexpr int64_t vectors_recorded = 1024;  // enough to fill the processor
constexpr int64_t noisy_copies = 32, least_noisy_copies = 8;
constexpr double noise_share = 0.15;   // share of the input's range (Smilkov et al. 2017, 4.1)
constexpr int64_t exact_outputs = 64;  // more are estimated from this many random directions

Tensor derivative(const Tensor& output, const Tensor& input) {
  const Tensor result = torch::autograd::grad({output.sum()}, {input}, {}, /*retain_graph=*/true,
                                              /*create_graph=*/false, /*allow_unused=*/true)[0];
  return result.defined() ? result : at::zeros_like(input);
}

// Returns the vectors of the source's tokens. `vectors`: all vectors that enter the network.
Tensor of_source(const Subject& subject, const Tensor& vectors) {
  const int64_t before = subject.network().top_vectors_of(subject.batch).before_source;
  // `input` lacks the class token, which is added later, but has the start token.
  const int64_t first = vectors.size(1) == subject.source_length() ? 0 : before;
  return vectors.narrow(1, first, subject.source_length());
}

// Traces copies of the subject after `change` has replaced their source vectors [rows, S, depth].
NetworkTrace trace_changed(const Subject& subject, int64_t rows,
                           const std::function<Tensor(const Tensor& source)>& change) {
  TraceOptions options{.gradients = true, .keeps = TraceParts::vectors};
  options.input = [&](const Tensor& input) {
    Tensor result = input.detach().clone();
    Tensor source = of_source(subject, result);
    source.copy_(change(source.clone()));
    return result;
  };
  return trace_network(subject.network(), repeated(subject.batch, rows), options);
}

// Log probabilities [B, V] of the answer's token t. If the network computes one token after
// another, gradients reach only the tokens before t.
Tensor distribution_of(const NetworkTrace& trace, int64_t t) {
  return trace.steps.empty() ? trace.distributions.select(1, t)
                             : trace.steps[static_cast<size_t>(t)];
}

// Explained quantity of token t, [B].
Tensor preference_of(const Subject& subject, const NetworkTrace& trace, int64_t t) {
  return preferences_at(subject, t, distribution_of(trace, t));
}

// Number of copies of one pair that are differentiated together. Each holds the vectors of all
// layers and, if weights are variables, a weight per pair of vectors.
int64_t copies_for(const Subject& subject) {
  const int64_t vectors = subject.source_length() + subject.target_length();
  return std::clamp<int64_t>(vectors_recorded / vectors, 1, copies_at_once);
}

// Answer tokens to explain: choice.tokens, or all.
std::vector<int64_t> tokens_of(const Subject& subject, const MethodChoice& choice) {
  if (!choice.tokens.empty()) return choice.tokens;
  std::vector<int64_t> all(static_cast<size_t>(subject.target_length()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Inserts rows [tokens, ..] into zeros for all tokens, [T, ..].
Tensor among_all(const Subject& subject, const std::vector<int64_t>& tokens, const Tensor& rows) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = subject.target_length();
  return at::zeros(shape, rows.options()).index_copy(0, at::tensor(tokens), rows);
}

// Maps log probabilities [B, T, V] to the quantity to differentiate, [B, T].
using Differentiated = std::function<Tensor(const Tensor& distributions)>;

// Returns the derivatives of each token's explained quantity by the variables [copies, ..] of a
// pass: [T, ..] each, float64 on the CPU. Each token has a copy of its own, so that one backward
// pass serves many tokens.
using TraceVariables = std::function<std::vector<Tensor>(const NetworkTrace& trace)>;
std::vector<Tensor> token_derivatives(const Subject& subject, const MethodChoice& choice,
                                      const TraceOptions& options, const TraceVariables& variables,
                                      const Differentiated& differentiated) {
  std::vector<std::vector<Tensor>> parts;
  const std::vector<int64_t> tokens = tokens_of(subject, choice);
  for (const Tensor& which : at::tensor(tokens).split(copies_for(subject))) {
    const NetworkTrace trace =
        trace_network(subject.network(), repeated(subject.batch, which.size(0)), options);
    const Tensor own = differentiated(trace.distributions).gather(1, which.unsqueeze(1));
    const std::vector<Tensor> by = variables(trace);
    const auto slopes = torch::autograd::grad({own.sum()}, by, {}, /*retain_graph=*/false,
                                              /*create_graph=*/false, /*allow_unused=*/true);
    parts.resize(by.size());
    for (size_t i = 0; i < by.size(); ++i)
      parts[i].push_back(float64_on_cpu(slopes[i].defined() ? slopes[i] : at::zeros_like(by[i])));
  }
  std::vector<Tensor> joined;
  joined.reserve(parts.size());
  for (const auto& each : parts) joined.push_back(among_all(subject, tokens, at::cat(each)));
  return joined;
}

std::vector<Tensor> token_derivatives(const Subject& subject, const MethodChoice& choice,
                                      const TraceOptions& options,
                                      const TraceVariables& variables) {
  return token_derivatives(subject, choice, options, variables, [&](const Tensor& distributions) {
    return preferences(subject, distributions);
  });
}

// Gradients [T, S, depth] of each token's explained quantity.
Tensor source_gradients(const Subject& subject, const MethodChoice& choice,
                        const TraceOptions& options) {
  const auto input = [](const NetworkTrace& trace) { return std::vector{trace.input}; };
  return of_source(subject, token_derivatives(subject, choice, options, input)[0]);
}

// Rows [T, S], with the row [S] that `row_of` returns for each token.
Tensor by_token(const Subject& subject, const MethodChoice& choice,
                const std::function<Tensor(int64_t token)>& row_of) {
  const std::vector<int64_t> tokens = tokens_of(subject, choice);
  std::vector<Tensor> rows;
  rows.reserve(tokens.size());
  for (const int64_t token : tokens) rows.push_back(row_of(token));
  return among_all(subject, tokens, at::stack(rows));
}

// Returns the input vectors of a source without information, and the explained quantity for it,
// [T]. Its text is unknown tokens between the special tokens, or frames of zeros. Zero vectors are
// unsuitable: a layer that normalises them is discontinuous there.
std::pair<Tensor, Tensor> blank_source(const Subject& subject) {
  Batch blank = subject.batch;
  blank.source = blank.source.is_floating_point() ? at::zeros_like(blank.source)
                                                  : with_unknown(subject, text_tokens(subject));
  const NetworkTrace trace =
      trace_network(subject.network(), blank, {.keeps = TraceParts::vectors});
  return {of_source(subject, trace.input).detach(),
          float64_on_cpu(preferences(subject, trace.distributions)[0])};
}

// Gauss-Legendre nodes between 0 and 1 and their weights, far more accurate for smooth functions
// than equal steps. The nodes are the roots of the polynomial P_n, found by Newton's method.
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

// Integral of the gradients along the path from `blank`, times the path: [T, S].
Tensor integrated_along(const Subject& subject, const MethodChoice& choice, const Tensor& blank,
                        const Tensor& way, int64_t steps) {
  const auto [places, shares] = legendre_places(steps);
  const int64_t at_once = copies_for(subject);
  Tensor sum;
  for (int64_t first = 0; first < steps; first += at_once) {
    const int64_t copies = std::min(at_once, steps - first);
    const Tensor along = places.narrow(0, first, copies).view({-1, 1, 1});
    const Tensor weights = shares.narrow(0, first, copies).view({-1, 1, 1});
    const NetworkTrace path = trace_changed(subject, copies, [&](const Tensor& source) {
      return blank + (source - blank) * along.to(source.options());
    });
    const Tensor part = by_token(subject, choice, [&](int64_t t) {
      const Tensor slope = derivative(preference_of(subject, path, t), path.input);
      return ((float64_on_cpu(of_source(subject, slope)) * weights).sum(0) * way[0]).sum(1);
    });
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

at::Generator fixed_draws() { return at::make_generator<at::CPUGeneratorImpl>(1); }

// Like preferences(), but of logits: the gradients of log p vanish if p is near 1. Uses log
// probabilities if the network does not report logits. [B, T].
Tensor preferred_logits(const Subject& subject, const NetworkTrace& trace) {
  if (!trace.logits.defined()) return preferences(subject, trace.distributions);
  const Tensor logits = trace.logits.dim() == 2 ? trace.logits.unsqueeze(1) : trace.logits;
  const int64_t without = trace.distributions.size(2) - logits.size(2);  // the first tokens
  return preferences(subject, at::constant_pad_nd(logits, {without, 0}));
}

// Chefer et al. 2021, eq. 5, per attention in the order of the trace and per answer token in
// `which`: the mean over heads of relu(a . d logit_t / d a), [tokens, rows, keys].
std::vector<Tensor> relevant_weights(const Subject& subject, const NetworkTrace& trace,
                                     const Tensor& which) {
  NetworkTrace copies = trace_network(subject.network(), repeated(subject.batch, which.size(0)),
                                      {.gradients = true, .keeps = TraceParts::attentions});
  const Tensor own = preferred_logits(subject, copies).gather(1, which.unsqueeze(1));
  std::vector<Tensor> contexts;
  for (const TracedAttention& one : copies.attentions)
    for (const AttentionCall& call : one.calls) contexts.push_back(call.result.context);
  const auto slopes = torch::autograd::grad({own.sum()}, contexts, {}, /*retain_graph=*/false,
                                            /*create_graph=*/false, /*allow_unused=*/true);
  copies = {};  // frees queries, keys and values before the maps are made
  std::vector<Tensor> maps;
  size_t next = 0;
  for (const TracedAttention& one : trace.attentions) {
    std::vector<Tensor> parts;
    for (size_t call = 0; call < one.calls.size(); ++call, ++next) {
      const Tensor slope = slopes[next].defined() ? slopes[next] : at::zeros_like(contexts[next]);
      parts.push_back(float64_on_cpu(slope.dim() == 4 ? slope : slope.unsqueeze(1)));
    }
    constexpr int64_t heads = 1, rows = 2;
    // Since context = a v, d logit / d a = (d logit / d context) v^T.
    const Tensor by_weight =
        at::matmul(at::cat(parts, one.in_steps() ? rows : heads), head_values(one).transpose(1, 2));
    maps.push_back((float64_on_cpu(traced_weights(one)) * by_weight).relu_().mean(heads));
  }
  return maps;
}

// Eq. 8 and 9: the relevance of other vectors as shares, plus the identity.
Tensor even_relevance(const Tensor& relevance) {
  const Tensor own = at::eye(relevance.size(1), relevance.options());
  const Tensor others = relevance - own, sums = others.sum(2, true);
  return at::where(sums > 0, others / sums, at::zeros_like(others)) + own;
}

// Eq. 6, 7 and 10: the relevance of the source to each token in `which`, [tokens, S]. Leaves out
// the initial relevance of each vector to itself, which would hide the rest.
Tensor relevant_source(const Subject& subject, const NetworkTrace& trace, const Tensor& which) {
  const std::vector<Tensor> maps = relevant_weights(subject, trace, which);
  const auto own_of = [](const Tensor& relevance, const Tensor& map) {
    return relevance.defined() ? relevance : at::eye(map.size(2), map.options()).expand_as(map);
  };
  Tensor encoder, decoder, read;  // within encoder and decoder; from encoder to decoder
  for (size_t i = 0; i < maps.size(); ++i) {
    const Tensor& map = maps[i];
    const Site& site = trace.attentions[i].site;
    if (reads_for_answer(trace.attentions[i])) {
      Tensor more = encoder.defined() ? map.bmm(even_relevance(encoder)) : map;
      if (site.layer > 0) more = even_relevance(decoder).transpose(1, 2).bmm(more);
      read = read.defined() ? read + more : more;
    } else if (site.part != NetworkPart::decoder) {
      const Tensor before = own_of(encoder, map);
      encoder = before + map.bmm(before);
    } else if (site.layer > 0) {
      const Tensor before = own_of(decoder, map);
      decoder = before + map.bmm(before);
      if (read.defined()) read = read + map.bmm(read);
    }
  }
  const TracedAttention& last = *answer_attention(trace, {});
  const Tensor relevant =
      read.defined() ? read : encoder - at::eye(encoder.size(1), encoder.options());
  std::vector<Tensor> rows;
  for (int64_t copy = 0; copy < which.size(0); ++copy) {
    const Tensor all = read_by_answer(subject, last, relevant[copy]);
    const int64_t token = all.size(0) == 1 ? 0 : which[copy].item<int64_t>();
    rows.push_back(source_columns(subject, last, all[token]));
  }
  return at::stack(rows);
}

}  // namespace

Tensor gradient(const Subject& subject, const NetworkTrace&, const MethodChoice& choice) {
  return source_gradients(subject, choice, {.gradients = true, .keeps = TraceParts::vectors})
      .norm(2, 2);
}

Tensor gradient_x_input(const Subject& subject, const NetworkTrace& trace,
                        const MethodChoice& choice) {
  const Tensor input = float64_on_cpu(of_source(subject, trace.input));
  return (source_gradients(subject, choice, {.gradients = true, .keeps = TraceParts::vectors}) *
          input)
      .sum(2);
}

Tensor held_amounts(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const TraceOptions options{.gradients = true, .hold_weights = true, .keeps = TraceParts::vectors};
  const Tensor input = float64_on_cpu(of_source(subject, trace.input));
  return (source_gradients(subject, choice, options) * input).sum(2);
}

// Jain & Wallace 2019, 4.1: the gradient by the token, with attention weights held.
Tensor held_gradient(const Subject& subject, const NetworkTrace& trace,
                     const MethodChoice& choice) {
  return held_amounts(subject, trace, choice).abs();
}

// Sundararajan et al. 2017, eq. 3. If the sum is off by more than a hundredth of the largest
// difference, the steps are too coarse, and their number doubles. Expensive steps begin with fewer.
Tensor integrated_gradients(const Subject& subject, const NetworkTrace& trace,
                            const MethodChoice& choice) {
  const auto [blank, before] = blank_source(subject);
  const Tensor way = float64_on_cpu(of_source(subject, trace.input)) - float64_on_cpu(blank);
  const Tensor asked = at::tensor(tokens_of(subject, choice));
  const Tensor difference = (float64_on_cpu(preferences(subject, trace.distributions)[0]) - before)
                                .index_select(0, asked);
  const int64_t passes = 1 + asked.size(0);  // per step, forward and backward
  int64_t steps = integration_steps;
  const int64_t maximum = affordable_passes(subject, choice);
  while (steps > least_integration_steps && steps * passes > maximum) steps /= 2;
  for (;; steps *= 2) {
    Tensor parts = integrated_along(subject, choice, blank, way, steps);
    const Tensor sums = parts.sum(1).index_select(0, asked);
    const double off = (sums - difference).abs().max().item<double>();
    if (steps >= max_integration_steps || off <= 0.01 * difference.abs().max().item<double>())
      return parts;
  }
}

Tensor smoothed_gradient(const Subject& subject, const NetworkTrace&, const MethodChoice& choice) {
  const at::Generator draws = fixed_draws();
  const int64_t passes = 1 + std::ssize(tokens_of(subject, choice));  // forward and backward
  const int64_t copies = std::clamp<int64_t>(affordable_passes(subject, choice) / passes,
                                             least_noisy_copies, noisy_copies);
  Tensor sum;
  for (const Tensor& some : at::arange(copies).split(copies_for(subject))) {
    const NetworkTrace noisy = trace_changed(subject, some.size(0), [&](const Tensor& source) {
      const Tensor noise = at::randn(source.sizes(), draws, at::kDouble).to(source.options());
      return source + noise_share * (source.max() - source.min()) * noise;
    });
    const Tensor slopes = by_token(subject, choice, [&](int64_t t) {
      const Tensor slope = derivative(preference_of(subject, noisy, t), noisy.input);
      return float64_on_cpu(of_source(subject, slope)).sum(0);
    });
    sum = sum.defined() ? sum + slopes : slopes;
  }
  return (sum / copies).norm(2, 2);
}

// || d log p(. | t) / d x_j ||_F, with one copy per row of the Jacobian. With many rows, the square
// is estimated by the mean over random signs u of || J' u ||^2, which has the same expectation.
Tensor jacobian_norms(const Subject& subject, const NetworkTrace& trace,
                      const MethodChoice& choice) {
  const Tensor possible = at::isfinite(trace.distributions[0][0]).nonzero().squeeze(1);
  const int64_t outputs = possible.size(0), copies = std::min(outputs, exact_outputs);
  const bool exact = copies == outputs;
  const at::Generator draws = fixed_draws();
  const Tensor directions = exact
                                ? at::eye(outputs, at::kDouble)
                                : at::randint(0, 2, {copies, outputs}, draws, at::kDouble) * 2 - 1;
  Tensor sum;
  for (const Tensor& some : directions.split(copies_for(subject))) {
    const NetworkTrace many =
        trace_changed(subject, some.size(0), [](const Tensor& source) { return source; });
    const Tensor squares = by_token(subject, choice, [&](int64_t t) {
      const Tensor output = distribution_of(many, t).index_select(1, possible);
      const Tensor projected = output * some.to(output.options());
      return float64_on_cpu(of_source(subject, derivative(projected, many.input)))
          .square()
          .sum(at::IntArrayRef{0, 2});
    });
    sum = sum.defined() ? sum + squares : squares;
  }
  return (exact ? sum : sum / copies).sqrt();
}

// Selvaraju et al. 2017, eq. 1-2, on the vectors that the last layer reads or, without layers, on
// the output of the convolutions.
Tensor grad_cam(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const auto features = [](const NetworkTrace& trace) {
    return trace.layers.empty() ? trace.input : trace.layers.back();
  };
  const Tensor values = float64_on_cpu(of_source(subject, features(trace)))[0];
  const Tensor slopes = token_derivatives(
      subject, choice, {.gradients = true, .keeps = TraceParts::vectors},
      [&](const NetworkTrace& copies) { return std::vector{features(copies)}; })[0];
  return of_source(subject, slopes).mean(1).matmul(values.t()).relu();
}

// a_tj d log p_t / d a_tj, summed over the heads.
Tensor attention_x_gradient(const Subject& subject, const NetworkTrace& trace,
                            const MethodChoice& choice) {
  const TracedAttention& attention = *answer_attention(trace, choice);
  const std::vector<int64_t> heads = chosen_heads(attention, choice);
  std::vector<Tensor> leaves;
  TraceOptions options{.weight_gradients = true, .keeps = TraceParts::vectors};
  options.weights = [&](const Site& site, size_t, const Tensor& weights) {
    if (!(site == attention.site)) return Tensor();
    leaves.push_back(weights.detach().requires_grad_());
    return leaves.back();
  };
  const std::vector<Tensor> slopes = token_derivatives(
      subject, choice, options, [&](const NetworkTrace&) { return std::exchange(leaves, {}); });
  // [T, heads, rows, columns]
  const Tensor weights = float64_on_cpu(traced_weights(attention));
  Tensor product = at::cat(slopes, attention.in_steps() ? 2 : 1).mul_(weights);
  if (!heads.empty()) product = product.narrow(1, heads[0], 1);
  const Tensor maps = product.sum(1);
  // A decoder's map has one row per token. In self-attention, all rows lead to the answer.
  const bool own = attention.site.reads_source && maps.size(1) == subject.target_length();
  return source_columns(subject, attention, own ? maps.diagonal(0, 0, 1).t() : maps.sum(1));
}

Tensor relevance(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const std::vector<int64_t> tokens = tokens_of(subject, choice);
  std::vector<Tensor> rows;
  for (const Tensor& which : at::tensor(tokens).split(copies_for(subject)))
    rows.push_back(relevant_source(subject, trace, which));
  return among_all(subject, tokens, at::cat(rows));
}

// Differentiates a sum over all possible tokens with random weights, so that derivatives do not
// cancel: it changes with every token that the answer depends on.
Tensor reached_scope(const Subject& subject, const NetworkTrace&, const MethodChoice& choice) {
  const auto input = [](const NetworkTrace& copies) { return std::vector{copies.input}; };
  const auto drawn_sum = [](const Tensor& distributions) {
    const Tensor weights = at::randn({distributions.size(2)}, fixed_draws(), at::kDouble);
    const Tensor possible = distributions.masked_fill(distributions == -INFINITY, 0.0);
    return (possible * weights.to(possible.options())).sum(2);
  };
  const TraceOptions options{.gradients = true, .keeps = TraceParts::vectors};
  const Tensor slopes = token_derivatives(subject, choice, options, input, drawn_sum)[0];
  return (of_source(subject, slopes) != 0).any(2);
}

// Nats of log probability that the answer loses without the token.
Tensor occlusion(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const VectorGroups groups = source_groups(subject, affordable_passes(subject, choice));
  const Tensor text_groups =
      std::get<0>(at::_unique(groups.by_vector().masked_select(text_tokens(subject))));
  Tensor lost = at::zeros({subject.target_length(), groups.count()}, at::kDouble);
  std::vector<std::vector<int64_t>> kept;
  for (int64_t i = 0; i < text_groups.size(0); ++i)
    kept.push_back(groups.others(text_groups[i].item<int64_t>()));
  if (kept.empty()) return groups.shared_out(lost);
  const Tensor without = float64_on_cpu(answers_of(subject, kept).preferences);  // [groups, T]
  const Tensor whole = float64_on_cpu(preferences(subject, trace.distributions));
  return groups.shared_out(lost.index_copy_(1, text_groups, (whole - without).t()));
}

}  // namespace attend
