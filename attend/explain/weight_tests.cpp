#include "attend/explain/weight_tests.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/autograd.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/weight_rows-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Answers under other weights, which change one token of `rows` each.
class ChangedAnswers {
 public:
  ChangedAnswers(const Subject& subject, const TracedAttention& attention, const WeightRows& rows)
      : subject_(subject),
        site_(attention.site),
        in_steps_(attention.in_steps() && attention.site.reads_source),
        rows_(rows.rows()),
        tokens_(at::tensor(rows.tokens())),
        before_(shift_right(subject.batch.target)[0].index_select(0, tokens_)) {
    if (in_steps_) keep_states(rows.tokens());
  }

  // Log probabilities [n, vocabulary] at the tokens `which` [n], indices into rows.tokens(), under
  // `weights` [n, heads, rows, keys].
  Tensor distributions(const Tensor& which, const Tensor& weights, bool gradients = false) const {
    TraceOptions options{.weight_gradients = gradients, .keeps = TraceParts::vectors};
    const Tensor tokens = tokens_.index_select(0, which);
    if (states_ != nullptr) {
      options.weights = [&](const Site& site, size_t, const Tensor& old) {
        return site == site_ ? weights.to(old.options()) : Tensor();
      };
      const auto state = states_->joined({});
      state->reorder(which, /*same_sources=*/false);
      const Tensor step = trace_step(*state, before_.index_select(0, which), options);
      return considered_at(subject_, tokens, step).to(at::kDouble);
    }
    std::optional<size_t> first_call;
    int64_t heads_seen = 0;
    options.weights = [&](const Site& site, size_t call, const Tensor& old) {
      if (!(site == site_)) return Tensor();
      if (!first_call) first_call = call;
      if (in_steps_) return at_step(old, static_cast<int64_t>(call - *first_call), tokens, weights);
      // Groups of heads are separate calls, in order.
      const Tensor own = weights.narrow(1, heads_seen, old.size(1)).to(old.options());
      heads_seen += old.size(1);
      const Tensor rows = rows_.index_select(0, which).unsqueeze(1).unsqueeze(3);
      return old.scatter(2, rows.expand_as(own), own);
    };
    const Batch batch = repeated(subject_.batch, which.size(0));
    const Tensor all = trace_network(subject_.network(), batch, options).distributions;
    const Tensor own =
        all.gather(1, tokens.view({-1, 1, 1}).expand({-1, 1, all.size(2)})).squeeze(1);
    return considered_at(subject_, tokens, own).to(at::kDouble);
  }

 private:
  // A token's weights only affect its own step, so that the steps before it are computed once. The
  // rows of the joined state may disagree, for example on positions; this only affects weights,
  // which are replaced.
  void keep_states(const std::vector<int64_t>& tokens) {
    const auto all = trace_states(subject_.network(), subject_.batch);
    if (all.empty()) return;
    std::vector<DecodingState*> later;
    for (size_t i = 1; i < tokens.size(); ++i)
      later.push_back(all[static_cast<size_t>(tokens[i])].get());
    states_ = all[static_cast<size_t>(tokens[0])]->joined(later);
  }

  static Tensor at_step(const Tensor& old, int64_t step, const Tensor& tokens,
                        const Tensor& weights) {
    const Tensor here = (tokens == step).nonzero().squeeze(1);
    return old.index_copy(0, here, weights.index_select(0, here).to(old.options()));
  }

  const Subject& subject_;
  Site site_;
  bool in_steps_;                          // one call of attention per token
  Tensor rows_, tokens_, before_;          // [tokens, rows], [tokens]
  std::unique_ptr<DecodingState> states_;  // before each of the tokens; may be null
};

Tensor total_variation(const Tensor& log_a, const Tensor& log_b) {
  return 0.5 * (log_a.exp() - log_b.exp()).abs().sum(-1);
}

class WeightTester {
 public:
  WeightTester(const Subject& subject, const NetworkTrace& trace, const TracedAttention& attention,
               const WeightRows& rows, const WeightTestOptions& options)
      : changed_(subject, attention, rows),
        rows_(rows),
        options_(options),
        each_(at::arange(std::ssize(rows.tokens()))),
        at_once_(rows_at_once(subject)),
        plain_(considered(subject, trace.distributions)[0]
                   .index_select(0, at::tensor(rows.tokens()))
                   .to(at::kDouble)),
        target_(subject.batch.target[0].index_select(0, at::tensor(rows.tokens()))),
        draws_(at::make_generator<at::CPUGeneratorImpl>(options.seed)) {}

  WeightTests run() {
    WeightTests result;
    result.tokens = each_.size(0);
    const Tensor largest = rows_.without(rows_.largest());
    const Tensor another = rows_.without(rows_.another(draws_));
    const Tensor other = changed_.distributions(at::cat({each_, each_, each_}),
                                                at::cat({largest, another, rows_.level()}));
    const auto parts = other.chunk(3);
    result.flips_by_largest = flips(parts[0]);
    result.flips_by_random = flips(parts[1]);
    const Tensor place = target_.unsqueeze(1);
    result.uniform_loss =
        (plain_.gather(1, place) - parts[2].gather(1, place)).mean().item<double>();
    result.permuted = permuted();
    result.adversarial = adversarial();
    return result;
  }

 private:
  double flips(const Tensor& other) const {
    return (other.argmax(1) != plain_.argmax(1)).to(at::kDouble).mean().item<double>();
  }

  double permuted() const {
    std::vector<Tensor> parts;
    for (const Tensor& which : each_.repeat(options_.permutations).split(at_once_)) {
      const Tensor other = changed_.distributions(which, rows_.permuted(which, draws_));
      parts.push_back(total_variation(other, plain_.index_select(0, which)));
    }
    const Tensor moved = at::cat(parts).view({options_.permutations, -1});
    return std::get<0>(moved.median(0)).mean().item<double>();
  }

  // Gradient ascent on the divergence of the weights, with a penalty if the answer moves by more
  // than is allowed.
  double adversarial() const {
    const at::AutoGradMode records(true);
    Tensor variables = rows_.near(draws_).requires_grad_();
    torch::optim::Adam optimiser({variables}, torch::optim::AdamOptions(0.5));
    Tensor best = at::zeros(each_.sizes(), at::kDouble);
    for (int64_t step = 0; step < options_.steps; ++step) {
      const Tensor weights = rows_.of_variables(variables);
      const Tensor other = changed_.distributions(each_, weights, /*gradients=*/true);
      const Tensor moved = total_variation(other, plain_);
      const Tensor divergence = row_divergence(weights, rows_.weights()).mean({1, 2});
      best = at::where(moved.detach() <= options_.nearly_equal,
                       at::maximum(best, divergence.detach()), best);
      const Tensor loss = (penalty * (moved - options_.nearly_equal).relu() - divergence).sum();
      variables.mutable_grad() = torch::autograd::grad({loss}, {variables})[0];
      optimiser.step();
    }
    return best.mean().item<double>();
  }

  static constexpr double penalty = 20;  // nats per unit of total variation

  ChangedAnswers changed_;
  const WeightRows& rows_;
  WeightTestOptions options_;
  Tensor each_;  // [tokens]: their indices
  int64_t at_once_;
  Tensor plain_, target_;
  at::Generator draws_;
};

}  // namespace

WeightTests test_weights(const Explanation& explanation, const WeightTestOptions& options) {
  const Subject& subject = explanation.subject();
  if (const AnswerKind& kind = subject.model.answer_kind(); !kind.has_probabilities())
    fail("[test_weights] they are tested by probabilities, and the answer is a {}", kind.name());
  const at::NoGradGuard not_recorded;
  const NetworkTrace& trace = explanation.trace();
  const std::string obstacle = no_weights_reason(subject, trace);
  if (!obstacle.empty()) fail("[test_weights] {}", obstacle);
  const TracedAttention& attention = *answer_attention(trace, {});
  const WeightRows rows(subject, attention, options.rows);
  if (rows.tokens().empty()) return {};
  return WeightTester(subject, trace, attention, rows, options).run();
}

}  // namespace attend
