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

constexpr int64_t integration_steps = 64, most_integration_steps = 1024;
constexpr int64_t least_integration_steps = 8;
constexpr int64_t copies_at_once = 64;
constexpr int64_t vectors_recorded = 1024;  // as many fill the processor
constexpr int64_t noisy_copies = 32, least_noisy_copies = 8;
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

// Log probabilities [B, V] of the answer's token t, whose gradients reach the tokens before it
// alone where the network computes one token after another.
Tensor distribution_of(const NetworkTrace& trace, int64_t t) {
  return trace.steps.empty() ? trace.distributions.select(1, t)
                             : trace.steps[static_cast<size_t>(t)];
}

// What is explained of the token, [B].
Tensor preference_of(const Subject& subject, const NetworkTrace& trace, int64_t t) {
  return preferences_at(subject, t, distribution_of(trace, t));
}

// Copies of one pair that are differentiated together. Each holds what all layers make of its
// vectors and, where weights take part as variables, a square of them.
int64_t copies_for(const Subject& subject) {
  const int64_t vectors = subject.source_length() + subject.target_length();
  return std::clamp<int64_t>(vectors_recorded / vectors, 1, copies_at_once);
}

// The tokens of the answer that are asked for.
std::vector<int64_t> tokens_of(const Subject& subject, const MethodChoice& choice) {
  if (!choice.tokens.empty()) return choice.tokens;
  std::vector<int64_t> all(static_cast<size_t>(subject.target_length()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Rows [tokens, ..] of those among zeros for all, [T, ..].
Tensor among_all(const Subject& subject, const std::vector<int64_t>& tokens, const Tensor& rows) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = subject.target_length();
  return at::zeros(shape, rows.options()).index_copy(0, at::tensor(tokens), rows);
}

// What is differentiated of log probabilities [B, T, V]: [B, T].
using Differentiated = std::function<Tensor(const Tensor& distributions)>;

// The derivatives of what is explained of each token by the variables [copies, ..] of a pass. Each
// token has a copy of its own, so that one backward pass does for many. [T, ..] each, float64 on
// the CPU.
using Variables = std::function<std::vector<Tensor>(const NetworkTrace& trace)>;
std::vector<Tensor> token_derivatives(const Subject& subject, const MethodChoice& choice,
                                      const TraceOptions& options, const Variables& variables,
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
                                      const TraceOptions& options, const Variables& variables) {
  return token_derivatives(subject, choice, options, variables, [&](const Tensor& distributions) {
    return preferences(subject, distributions);
  });
}

// The gradients [T, S, depth] of what is explained of each token.
Tensor source_gradients(const Subject& subject, const MethodChoice& choice,
                        const TraceOptions& options) {
  const auto input = [](const NetworkTrace& trace) { return std::vector{trace.input}; };
  return of_source(subject, token_derivatives(subject, choice, options, input)[0]);
}

// The row [S] of each token by `row_of`, as rows [T, S].
Tensor by_token(const Subject& subject, const MethodChoice& choice,
                const std::function<Tensor(int64_t token)>& row_of) {
  const std::vector<int64_t> tokens = tokens_of(subject, choice);
  std::vector<Tensor> rows;
  rows.reserve(tokens.size());
  for (const int64_t token : tokens) rows.push_back(row_of(token));
  return among_all(subject, tokens, at::stack(rows));
}

// What enters the network if nothing is known of the text, unknown tokens among its special ones or
// frames of zeros, and what is explained then, [T]. Vectors of zero would not do, for a layer that
// normalises them jumps there.
std::pair<Tensor, Tensor> blank_source(const Subject& subject) {
  Batch blank = subject.batch;
  blank.source = blank.source.is_floating_point()
                     ? at::zeros_like(blank.source)
                     : blank.source.masked_fill(text_tokens(subject), unknown_token(subject.model));
  const NetworkTrace trace = trace_network(subject.network(), blank, {.attentions = false});
  return {of_source(subject, trace.input).detach(),
          float64_on_cpu(preferences(subject, trace.distributions)[0])};
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

// As preferences(), of the logits: the slopes of log p vanish where p is near 1. Of log
// probabilities if the network does not report its logits. [B, T].
Tensor preferred_logits(const Subject& subject, const NetworkTrace& trace) {
  if (!trace.logits.defined()) return preferences(subject, trace.distributions);
  const Tensor logits = trace.logits.dim() == 2 ? trace.logits.unsqueeze(1) : trace.logits;
  const int64_t without = trace.distributions.size(2) - logits.size(2);  // the first tokens
  return preferences(subject, at::constant_pad_nd(logits, {without, 0}));
}

// Chefer et al. 2021, eq. 5, of each attention in the order of the trace, for each of the answer's
// tokens `which`: relu(a . d logit_t / d a), the mean of its heads, [tokens, rows, keys].
std::vector<Tensor> relevant_weights(const Subject& subject, const NetworkTrace& trace,
                                     const Tensor& which) {
  NetworkTrace copies = trace_network(subject.network(), repeated(subject.batch, which.size(0)),
                                      {.gradients = true, .blocks = false});
  const Tensor own = preferred_logits(subject, copies).gather(1, which.unsqueeze(1));
  std::vector<Tensor> contexts;
  for (const TracedAttention& one : copies.attentions)
    for (const AttentionCall& call : one.calls) contexts.push_back(call.result.context);
  const auto slopes = torch::autograd::grad({own.sum()}, contexts, {}, /*retain_graph=*/false,
                                            /*create_graph=*/false, /*allow_unused=*/true);
  copies = {};  // its queries, keys and values, before there are maps
  std::vector<Tensor> maps;
  size_t next = 0;
  for (const TracedAttention& one : trace.attentions) {
    std::vector<Tensor> parts;
    for (size_t call = 0; call < one.calls.size(); ++call, ++next) {
      const Tensor slope = slopes[next].defined() ? slopes[next] : at::zeros_like(contexts[next]);
      parts.push_back(float64_on_cpu(slope.dim() == 4 ? slope : slope.unsqueeze(1)));
    }
    constexpr int64_t heads = 1, rows = 2;
    // The forward line is context = a v, so that d logit / d a = (d logit / d context) v^T.
    const Tensor by_weight =
        at::matmul(at::cat(parts, one.in_steps() ? rows : heads), head_values(one).transpose(1, 2));
    maps.push_back((float64_on_cpu(traced_weights(one)) * by_weight).relu_().mean(heads));
  }
  return maps;
}

// Eq. 8 and 9: what is relevant to a vector besides itself, as shares, and itself.
Tensor even_relevance(const Tensor& relevance) {
  const Tensor own = at::eye(relevance.size(1), relevance.options());
  const Tensor others = relevance - own, sums = others.sum(2, true);
  return at::where(sums > 0, others / sums, at::zeros_like(others)) + own;
}

// The rules of eq. 6, 7 and 10: what of the source is relevant to each of those tokens, [tokens,
// S]. What each vector is to itself from the start is left out: it would hide the rest.
Tensor relevant_source(const Subject& subject, const NetworkTrace& trace, const Tensor& which) {
  const std::vector<Tensor> maps = relevant_weights(subject, trace, which);
  const auto own_of = [](const Tensor& relevance, const Tensor& map) {
    return relevance.defined() ? relevance : at::eye(map.size(2), map.options()).expand_as(map);
  };
  Tensor encoder, decoder, read;  // among themselves; of the encoder's to the decoder's
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
  return source_gradients(subject, choice, {.gradients = true, .attentions = false}).norm(2, 2);
}

Tensor gradient_x_input(const Subject& subject, const NetworkTrace& trace,
                        const MethodChoice& choice) {
  const Tensor input = float64_on_cpu(of_source(subject, trace.input));
  return (source_gradients(subject, choice, {.gradients = true, .attentions = false}) * input)
      .sum(2);
}

Tensor held_amounts(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const TraceOptions options{.gradients = true, .hold_weights = true, .attentions = false};
  const Tensor input = float64_on_cpu(of_source(subject, trace.input));
  return (source_gradients(subject, choice, options) * input).sum(2);
}

// Jain & Wallace 2019, 4.1: the gradient by the token, with the weights of attention held.
Tensor held_gradient(const Subject& subject, const NetworkTrace& trace,
                     const MethodChoice& choice) {
  return held_amounts(subject, trace, choice).abs();
}

// Sundararajan et al. 2017, eq. 3. Where the sum is off by over a hundredth of the largest
// difference, the way is sharper than the steps, and is gone in twice as many; steps that take long
// begin with fewer.
Tensor integrated_gradients(const Subject& subject, const NetworkTrace& trace,
                            const MethodChoice& choice) {
  const auto [blank, before] = blank_source(subject);
  const Tensor way = float64_on_cpu(of_source(subject, trace.input)) - float64_on_cpu(blank);
  const Tensor asked = at::tensor(tokens_of(subject, choice));
  const Tensor difference = (float64_on_cpu(preferences(subject, trace.distributions)[0]) - before)
                                .index_select(0, asked);
  const int64_t passes = 1 + asked.size(0);  // of a step, forward and backward
  int64_t steps = integration_steps;
  const int64_t most = affordable_passes(subject, choice);
  while (steps > least_integration_steps && steps * passes > most) steps /= 2;
  for (;; steps *= 2) {
    Tensor parts = integrated_along(subject, choice, blank, way, steps);
    const Tensor sums = parts.sum(1).index_select(0, asked);
    const double off = (sums - difference).abs().max().item<double>();
    if (steps >= most_integration_steps || off <= 0.01 * difference.abs().max().item<double>())
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

// || d log p(. | t) / d x_j ||_F, each row of the Jacobian on a copy of its own. Where there are
// many rows, the mean over random signs u of || J' u ||^2, whose expectation is the same.
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

// Selvaraju et al. 2017, eq. 1-2, over the vectors that the last layer reads or, without layers,
// those that convolutions made.
Tensor grad_cam(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const auto features = [](const NetworkTrace& trace) {
    return trace.layers.empty() ? trace.input : trace.layers.back();
  };
  const Tensor values = float64_on_cpu(of_source(subject, features(trace)))[0];
  const Tensor slopes = token_derivatives(
      subject, choice, {.gradients = true, .attentions = false},
      [&](const NetworkTrace& copies) { return std::vector{features(copies)}; })[0];
  return of_source(subject, slopes).mean(1).matmul(values.t()).relu();
}

// a_tj d log p_t / d a_tj, summed over the heads.
Tensor attention_x_gradient(const Subject& subject, const NetworkTrace& trace,
                            const MethodChoice& choice) {
  const TracedAttention& attention = *answer_attention(trace, choice);
  const std::vector<int64_t> heads = chosen_heads(attention, choice);
  std::vector<Tensor> leaves;
  TraceOptions options{.weight_gradients = true, .attentions = false};
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
  // A decoder's own row of the token; of self-attention all rows lead to the answer.
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

// A sum of all that could be answered, with weights that no derivative of it would cancel, moves
// with every token that the answer can see.
Tensor reached_scope(const Subject& subject, const NetworkTrace&, const MethodChoice& choice) {
  const auto input = [](const NetworkTrace& copies) { return std::vector{copies.input}; };
  const auto drawn_sum = [](const Tensor& distributions) {
    const Tensor weights = at::randn({distributions.size(2)}, fixed_draws(), at::kDouble);
    const Tensor possible = distributions.masked_fill(distributions == -INFINITY, 0.0);
    return (possible * weights.to(possible.options())).sum(2);
  };
  const TraceOptions options{.gradients = true, .attentions = false};
  const Tensor slopes = token_derivatives(subject, choice, options, input, drawn_sum)[0];
  return (of_source(subject, slopes) != 0).any(2);
}

// How much less probable, in nats, the answer is when the token is not there.
Tensor occlusion(const Subject& subject, const NetworkTrace& trace, const MethodChoice& choice) {
  const VectorGroups groups = source_groups(subject, affordable_passes(subject, choice));
  const Tensor of_text =
      std::get<0>(at::_unique(groups.of_vectors().masked_select(text_tokens(subject))));
  Tensor lost = at::zeros({subject.target_length(), groups.count()}, at::kDouble);
  std::vector<std::vector<int64_t>> kept;
  for (int64_t i = 0; i < of_text.size(0); ++i)
    kept.push_back(groups.others(of_text[i].item<int64_t>()));
  if (kept.empty()) return groups.shared_out(lost);
  const Tensor without = float64_on_cpu(answers_of(subject, kept).preferences);  // [groups, T]
  const Tensor whole = float64_on_cpu(preferences(subject, trace.distributions));
  return groups.shared_out(lost.index_copy_(1, of_text, (whole - without).t()));
}

}  // namespace attend
