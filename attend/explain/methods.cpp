#include "attend/explain/methods.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/find_row.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/decomposition-inl.h"

namespace attend {
namespace {

using at::Tensor;

std::string no_vectors_reason(const NetworkTrace& trace) {
  return trace.input.defined()
             ? ""
             : "models of this type do not report the vectors of their sources; take occlusion";
}

std::string not_compared_reason(const MethodRow& method) {
  return method.what == ScoresOf::network
             ? "its scores are the same for every answer, so it cannot compare two; take occlusion "
               "or a method of gradients"
             : "its scores cover all possible answers, so it cannot compare two; take gradient";
}

bool any_attention(const NetworkTrace& trace, bool (*is)(const TracedAttention& one)) {
  return std::any_of(trace.attentions.begin(), trace.attentions.end(), is);
}

std::string not_followed_reason(const NetworkTrace& trace) {
  if (!any_attention(trace, [](const auto& one) { return one.site.layer > 0; }))
    return "the model has no layers of self-attention; take attention";
  if (any_attention(trace, [](const auto& one) { return !one.has_weights(); }))
    return "a layer normalises by running sums, which form no weights";
  if (any_attention(trace, [](const auto& one) { return one.has_signed_weights(); }))
    return "weights may be negative and so are not shares; take a method of gradients";
  return {};
}

std::string not_one_stack_reason(const NetworkTrace& trace) {
  if (any_attention(trace, [](const auto& one) { return one.site.part == NetworkPart::decoder; }))
    return "it follows the layers of one stack, and the answer has a decoder; take rollout";
  return not_followed_reason(trace);
}

std::string no_decoder_reason(const NetworkTrace& trace) {
  return any_attention(trace, [](const auto& one) { return one.site.reads_source; })
             ? ""
             : "no decoder reads the source; take attention";
}

// Returns why a need other than an attention for the answer is not met; empty if all are.
std::string not_besides_reason(MethodNeeds needs, const NetworkTrace& trace) {
  switch (needs) {
    case MethodNeeds::decoder:
      return no_decoder_reason(trace);
    case MethodNeeds::stack:
      return not_one_stack_reason(trace);
    case MethodNeeds::layers:
      return not_followed_reason(trace);
    case MethodNeeds::blocks: {
      const std::string obstacle = not_followed_reason(trace);
      return obstacle.empty() ? no_blocks_reason(trace) : obstacle;
    }
    case MethodNeeds::nothing:
    case MethodNeeds::vectors:
    case MethodNeeds::weights:
    case MethodNeeds::features:
    case MethodNeeds::parts:
      break;
  }
  return {};
}

// Methods that follow weights and layers.
std::vector<MethodRow> forward_methods() {
  return {
      {"attention", "a_tj", "attention weight", "Bahdanau et al. 2015", "1 forward",
       MethodNeeds::weights, ScoresOf::network, ScoreScale::weights, true, false, raw_weights,
       answer_scope, DefaultFor::answers},
      {"rollout", "product over layers of (A + I) / 2",
       "weights of all layers, followed down to the tokens", "Abnar & Zuidema 2020",
       "1 forward, a product per layer", MethodNeeds::layers, ScoresOf::network,
       ScoreScale::lengths, false, false, roll_out, layers_scope, DefaultFor::mixed_layers},
      {"flow", "max flow through (A + I) / 2", "maximum flow from the answer down to the token",
       "Abnar & Zuidema 2020", "1 forward, T S flows; fewer of long sources", MethodNeeds::stack,
       ScoresOf::network, ScoreScale::weights, false, false, attention_flow, layers_scope},
      {"value_zeroing", "product over layers of 1 - cos(y_i, y_i with v_j = 0)",
       "angle by which the layers' vectors turn if the token's value is zero, followed down to the "
       "tokens",
       "Mohebbi et al. 2023", "T + S forward; fewer of long sources", MethodNeeds::blocks,
       ScoresOf::network, ScoreScale::lengths, false, true, value_zeroing, layers_scope},
      {"alti", "product over layers of relu(|y_i| - |y_i - T_i(x_j)|)",
       "closeness of the token's contribution to the layers' vectors, followed down to the tokens",
       "Ferrando et al. 2022", "1 forward, T S sums over the heads of a layer", MethodNeeds::blocks,
       ScoresOf::network, ScoreScale::lengths, false, true, layer_contributions, layers_scope},
      {"norms", "|| sum_h a_tj v_j W_O ||",
       "length of the vector that the token adds to the context", "Kobayashi et al. 2020",
       "1 forward", MethodNeeds::weights, ScoresOf::network, ScoreScale::lengths, true, false,
       value_norms, answer_scope},
      {"shifted", "a_(t+1)j", "weight in the next step, after the decoder has read its token",
       "Chen et al. 2020", "1 forward", MethodNeeds::decoder, ScoresOf::network,
       ScoreScale::weights, true, false, shifted_alignment, shifted_scope},
  };
}

// Methods that depend on the answer's probability or logit.
std::vector<MethodRow> answer_methods() {
  return {
      {"gradient", "|| d log p_t / d x_j ||", "effect of a small change of the token's vector",
       "Simonyan et al. 2014", "T forward, T backward", MethodNeeds::vectors, ScoresOf::answer,
       ScoreScale::lengths, false, false, gradient},
      {"gradient_x_input", "x_j . d log p_t / d x_j",
       "first-order change if the token's vector were zero", "Shrikumar et al. 2017",
       "T forward, T backward", MethodNeeds::vectors, ScoresOf::answer, ScoreScale::amounts, false,
       false, gradient_x_input},
      {"held_gradient", "|x_j . d log p_t / d x_j|, all weights constant",
       "magnitude of gradient_x_input with constant attention weights", "Jain & Wallace 2019",
       "T forward, T backward", MethodNeeds::vectors, ScoresOf::answer, ScoreScale::lengths, false,
       false, held_gradient},
      {"integrated_gradients", "(x_j - u) . mean over a of d log p_t(u + a (x - u)) / d x_j",
       "gradient_x_input along the path from a source of unknown tokens u; scores add up to the "
       "whole difference",
       "Sundararajan et al. 2017", "64 forward, 64 T backward or more", MethodNeeds::vectors,
       ScoresOf::answer, ScoreScale::amounts, false, true, integrated_gradients},
      {"smoothed_gradient", "|| mean of d log p_t(x + noise) / d x_j ||",
       "gradient, averaged over noisy inputs", "Smilkov et al. 2017",
       "32 forward, 32 T backward; fewer of long sources", MethodNeeds::vectors, ScoresOf::answer,
       ScoreScale::lengths, false, true, smoothed_gradient},
      {"jacobian", "|| d log p(.|t) / d x_j ||_F", "effect on all possible answers", "Graves 2012",
       "up to 64 forward, 64 T backward", MethodNeeds::vectors, ScoresOf::answers,
       ScoreScale::lengths, false, true, jacobian_norms},
      {"grad_cam", "relu(f_j . mean of d log p_t / d f)", "features that support the answer",
       "Selvaraju et al. 2017", "T forward, T backward", MethodNeeds::features, ScoresOf::answer,
       ScoreScale::lengths, false, false, grad_cam},
      {"attention_x_gradient", "a_tj d log p_t / d a_tj",
       "weight times the dependence of the answer on it", "Serrano & Smith 2019",
       "T forward, T backward", MethodNeeds::weights, ScoresOf::answer, ScoreScale::amounts, true,
       false, attention_x_gradient, answer_scope},
      {"relevance", "R += mean over heads of relu(a . d logit_t / d a) R, layer after layer",
       "weights of all layers that support the answer, followed down to the tokens",
       "Chefer et al. 2021", "T forward, T backward", MethodNeeds::layers, ScoresOf::answer,
       ScoreScale::lengths, false, false, relevance, layers_scope},
      {"decompx", "part of x_j in logit_t through all layers",
       "the token's part of the logit, with the layers' nonlinear factors constant; parts add up "
       "to the logit",
       "Modarressi et al. 2023", "S + 2 forward; fewer of long sources", MethodNeeds::parts,
       ScoresOf::answer, ScoreScale::amounts, false, true, token_parts},
      {"occlusion", "log p_t - log p_t without j", "loss of log probability without the token",
       "Li et al. 2016", "S forward; fewer of long sources", MethodNeeds::nothing, ScoresOf::answer,
       ScoreScale::amounts, false, true, occlusion, nullptr, DefaultFor::unweighted},
  };
}

}  // namespace

const std::vector<MethodRow>& method_table() {
  static const std::vector<MethodRow> table = [] {
    std::vector<MethodRow> all = forward_methods();
    for (const MethodRow& row : answer_methods()) all.push_back(row);
    return all;
  }();
  return table;
}

const MethodRow& find_method(const std::string& name) {
  return find_row(method_table(), "method", name);
}

const MethodRow& default_method(const Explanation& explanation) {
  const Subject& subject = explanation.subject();
  const auto row_for = [](DefaultFor answers) -> const MethodRow& {
    return *std::find_if(method_table().begin(), method_table().end(),
                         [&](const MethodRow& row) { return row.default_for == answers; });
  };
  const auto applies = [&](const MethodRow& row) {
    return refusal_reason(row, subject, explanation.trace(row.traces())).empty();
  };
  const MethodRow& unweighted = row_for(DefaultFor::unweighted);
  if (subject.against.defined()) return unweighted;
  if (subject.model.answer_kind().is_pooled() && layers_add(subject)) {
    const MethodRow& row = row_for(DefaultFor::mixed_layers);
    if (applies(row)) return row;
  }
  const MethodRow& row = row_for(DefaultFor::answers);
  // Recurrences form weights only if a watch asks.
  return subject.network().attends() || applies(row) ? row : unweighted;
}

std::string refusal_reason(const MethodRow& method, const Subject& subject,
                           const NetworkTrace& trace) {
  if (subject.against.defined() && method.what != ScoresOf::answer)
    return not_compared_reason(method);
  switch (method.needs) {
    case MethodNeeds::nothing:
      return {};
    case MethodNeeds::vectors:
      return no_vectors_reason(trace);
    case MethodNeeds::features:
      return subject.batch.source.is_floating_point()
                 ? no_vectors_reason(trace)
                 : "the model reads tokens, which have no features; take gradient_x_input";
    case MethodNeeds::parts:
      return no_parts_reason(subject, trace);
    default:
      break;
  }
  // First, so that no message recommends another method that lacks weights, too.
  if (std::string obstacle = no_weights_reason(subject, trace); !obstacle.empty()) return obstacle;
  return not_besides_reason(method.needs, trace);
}

std::string no_weights_reason(const Subject& subject, const NetworkTrace& trace) {
  const TracedAttention* attention = answer_attention(trace, {});
  if (attention == nullptr) return "nothing in the model attends; take a method of gradients";
  if (!attention->has_weights())
    return "the attention normalises by running sums, which form no weights; take a method of "
           "gradients";
  if (!reads_for_answer(*attention) &&
      !subject.network().top_vectors_of(subject.batch).shares.defined())
    return "models of this type do not report how answers are read off their layers; take a method "
           "of gradients";
  return {};
}

Tensor method_scores(const MethodRow& method, const Subject& subject, const NetworkTrace& trace,
                     const MethodChoice& choice) {
  const at::AutoGradMode records(true);
  const std::string obstacle = refusal_reason(method, subject, trace);
  if (!obstacle.empty()) fail("method {}: {}", method.name, obstacle);
  if (!method.takes_head && (choice.head || choice.layer))
    fail("method {}: takes all layers and heads together; leave layer and head out", method.name);
  return method.scores(subject, trace, choice).detach().to(at::kCPU, at::kDouble).contiguous();
}

Tensor method_scores(const MethodRow& method, const Explanation& explanation,
                     const MethodChoice& choice) {
  return method_scores(method, explanation.subject(), explanation.trace(method.traces()), choice);
}

Tensor method_scope(const MethodRow& method, const Subject& subject, const NetworkTrace& trace,
                    const MethodChoice& choice) {
  const at::AutoGradMode records(true);
  if (method.scope != nullptr) return method.scope(subject, trace, choice).cpu();
  if (!no_vectors_reason(trace).empty())
    return at::ones({subject.target_length(), subject.source_length()}, at::kBool);
  return reached_scope(subject, trace, choice);
}

Tensor drawn_scores(const MethodRow& method, const Tensor& scores) {
  if (method.scale == ScoreScale::weights) return scores;
  const Tensor magnitudes = scores.abs();
  const Tensor sums = magnitudes.sum(-1, true);
  return at::where(sums > 0, magnitudes / sums, magnitudes);
}

}  // namespace attend
