#include "attend/explain/weight_tests.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t variants_at_once = 128;

// Answers under changed weights. A variant is a token of the answer and the weights that its row
// gets.
class ChangedWeights {
 public:
  ChangedWeights(const Subject& subject, const NetworkTrace& trace)
      : subject_(subject), attention_(*answer_attention(trace, {})) {
    if (!attention_.in_steps() && !attention_.site.reads_source) {
      const Tensor shares =
          subject.network().top_vectors(subject.source_length(), subject.target_length()).shares;
      for (int64_t t = 0; t < shares.size(0); ++t)
        read_rows_.push_back(shares[t].nonzero().squeeze(1));
    }
  }

  // Log probabilities [variants, vocabulary] at the token of the answer that each variant names.
  // `change` is given the weights [n, heads, keys] of the rows of n variants and returns new ones.
  using Change = std::function<Tensor(const Tensor& weights, const std::vector<int64_t>& variants)>;
  Tensor distributions(const std::vector<int64_t>& tokens, const Change& change,
                       bool gradients = false) const {
    size_t first_call = 0;
    bool begun = false;
    TraceOptions options{.gradients = gradients, .attentions = false};
    options.weights = [&](const Site& site, size_t call, const Tensor& weights) {
      if (!same_site(site, attention_.site)) return Tensor();
      if (!begun) first_call = call;
      begun = true;
      return changed(weights, static_cast<int64_t>(call - first_call), tokens, change);
    };
    const auto rows = static_cast<int64_t>(tokens.size());
    const Batch batch = repeated(subject_.batch, rows);
    const Tensor all = trace_network(subject_.network(), batch, options).distributions;
    const Tensor place = at::tensor(tokens).view({-1, 1, 1}).expand({-1, 1, all.size(2)});
    return all.gather(1, place).squeeze(1).to(at::kDouble);
  }

 private:
  Tensor changed(const Tensor& weights, int64_t step, const std::vector<int64_t>& tokens,
                 const Change& change) const {
    Tensor result = weights;
    std::vector<int64_t> variants;
    for (size_t i = 0; i < tokens.size(); ++i) variants.push_back(static_cast<int64_t>(i));
    if (attention_.in_steps() && attention_.site.reads_source) {
      std::erase_if(variants, [&](int64_t i) { return tokens[static_cast<size_t>(i)] != step; });
      if (variants.empty()) return result;
      const Tensor which = at::tensor(variants);
      const Tensor made = change(weights.index_select(0, which).select(2, 0), variants);
      return weights.index_copy(0, which, made.unsqueeze(2));
    }
    // One call holds all rows; of a pooling there is one.
    std::vector<Tensor> parts;
    for (const int64_t i : variants) {
      const int64_t token = tokens[static_cast<size_t>(i)];
      const Tensor own = weights[i];  // [heads, rows, keys]
      const Tensor rows = own.size(1) == 1     ? at::zeros({1}, at::kLong)
                          : read_rows_.empty() ? at::full({1}, token, at::kLong)
                                               : read_rows_[static_cast<size_t>(token)];
      std::vector<Tensor> made;
      for (int64_t r = 0; r < rows.size(0); ++r)
        made.push_back(change(own.select(1, rows[r].item<int64_t>()).unsqueeze(0), {i})[0]);
      parts.push_back(own.index_copy(1, rows, at::stack(made, 1)));
    }
    return at::stack(parts);
  }

  const Subject& subject_;
  const TracedAttention& attention_;
  std::vector<Tensor> read_rows_;  // of self-attention that the answer is read off
};

Tensor total_variation(const Tensor& log_a, const Tensor& log_b) {
  return 0.5 * (log_a.exp() - log_b.exp()).abs().sum(-1);
}

Tensor normalised(const Tensor& weights) {
  const Tensor sums = weights.sum(-1, true);
  return at::where(sums > 0, weights / sums, weights);
}

// In nats, of rows of weights.
Tensor jensen_shannon(const Tensor& p, const Tensor& q) {
  const Tensor m = 0.5 * (p + q);
  const auto kl = [&](const Tensor& a) { return (at::xlogy(a, a) - at::xlogy(a, m)).sum(-1); };
  return 0.5 * (kl(p) + kl(q));
}

class WeightTester {
 public:
  WeightTester(const Subject& subject, const NetworkTrace& trace, const WeightTestOptions& options)
      : changed_(subject, trace),
        options_(options),
        tokens_(evenly_spaced(std::ssize(subject.target), options.rows)),
        plain_(trace.distributions[0].index_select(0, at::tensor(tokens_)).to(at::kDouble)),
        target_(subject.batch.target[0].index_select(0, at::tensor(tokens_))),
        draws_(at::make_generator<at::CPUGeneratorImpl>(options.seed)) {}

  WeightTests run() {
    WeightTests result;
    result.flips_by_largest = flips([&](const Tensor& weights) {
      return weights.sum(1, true).argmax(2, true).expand({-1, weights.size(1), -1});
    });
    result.flips_by_random = flips([&](const Tensor& weights) {
      return at::randint(weights.size(2), {weights.size(0), 1, 1}, draws_, at::kLong)
          .expand({-1, weights.size(1), -1});
    });
    result.permuted = permuted();
    result.uniform_loss = uniform_loss();
    result.adversarial = adversarial();
    return result;
  }

 private:
  // How often the most probable token is another without one weight, the others adding up to 1.
  double flips(const std::function<Tensor(const Tensor& weights)>& removed) const {
    const Tensor other = changed_.distributions(tokens_, [&](const Tensor& weights, const auto&) {
      return normalised(weights.scatter(2, removed(weights), 0.0));
    });
    return (other.argmax(1) != plain_.argmax(1)).to(at::kDouble).mean().item<double>();
  }

  double permuted() const {
    std::vector<int64_t> tokens, rows;
    for (int64_t i = 0; i < options_.permutations; ++i) {
      for (size_t row = 0; row < tokens_.size(); ++row) {
        tokens.push_back(tokens_[row]);
        rows.push_back(static_cast<int64_t>(row));
      }
    }
    std::vector<Tensor> parts;
    const auto all = static_cast<int64_t>(tokens.size());
    for (int64_t first = 0; first < all; first += variants_at_once) {
      const int64_t last = std::min(first + variants_at_once, all);
      const Tensor other = changed_.distributions(
          {tokens.begin() + first, tokens.begin() + last}, [&](const Tensor& weights, const auto&) {
            const Tensor order =
                at::rand({weights.size(0), 1, weights.size(2)}, draws_).argsort(2, false);
            return weights.gather(2, order.expand_as(weights));
          });
      const std::vector<int64_t> own(rows.begin() + first, rows.begin() + last);
      parts.push_back(total_variation(other, plain_.index_select(0, at::tensor(own))));
    }
    const Tensor moved = at::cat(parts).view({options_.permutations, -1});
    return std::get<0>(moved.median(0)).mean().item<double>();
  }

  double uniform_loss() const {
    const Tensor other = changed_.distributions(tokens_, [&](const Tensor& weights, const auto&) {
      return weights.sum(2, true).expand_as(weights) / static_cast<double>(weights.size(2));
    });
    const Tensor place = target_.unsqueeze(1);
    return (plain_.gather(1, place) - other.gather(1, place)).mean().item<double>();
  }

  // Moves logits of the weights uphill in their divergence, downhill in what the answer has moved
  // over the allowed.
  double adversarial() const {
    const auto count = static_cast<int64_t>(tokens_.size());
    Tensor start;  // [tokens, heads, keys]
    changed_.distributions(tokens_, [&](const Tensor& weights, const std::vector<int64_t>& which) {
      if (!start.defined())
        start = at::zeros({count, weights.size(1), weights.size(2)}, at::kDouble);
      start.index_copy_(0, at::tensor(which), weights.to(at::kDouble));
      return weights;
    });
    start = normalised(start.clamp_min(0));
    const at::AutoGradMode records(true);
    Tensor logits =
        (start.clamp_min(1e-6).log() + at::randn(start.sizes(), draws_, start.options()))
            .requires_grad_();
    torch::optim::Adam optimiser({logits}, torch::optim::AdamOptions(0.5));
    Tensor best = at::zeros({count}, at::kDouble);
    for (int64_t step = 0; step < options_.steps; ++step) {
      const Tensor weights = logits.softmax(-1);
      const Tensor other = changed_.distributions(
          tokens_,
          [&](const Tensor& old, const std::vector<int64_t>& which) {
            return weights.index_select(0, at::tensor(which)).to(old.scalar_type());
          },
          /*gradients=*/true);
      const Tensor moved = total_variation(other, plain_);
      const Tensor divergence = jensen_shannon(weights, start).mean(1);
      best = at::where(moved.detach() <= options_.nearly_equal,
                       at::maximum(best, divergence.detach()), best);
      optimiser.zero_grad();
      (penalty * (moved - options_.nearly_equal).relu() - divergence).sum().backward();
      optimiser.step();
    }
    return best.mean().item<double>();
  }

  static constexpr double penalty = 20;  // nats a unit of total variation

  ChangedWeights changed_;
  WeightTestOptions options_;
  std::vector<int64_t> tokens_;
  Tensor plain_, target_;
  at::Generator draws_;
};

}  // namespace

std::vector<int64_t> evenly_spaced(int64_t count, int64_t most) {
  const int64_t taken = std::min(count, most);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < taken; ++i) numbers.push_back(i * count / taken);
  return numbers;
}

WeightTests test_weights(const Subject& subject, const WeightTestOptions& options) {
  const at::NoGradGuard not_recorded;
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  const std::string obstacle = why_not(find_method("attention"), subject, trace);
  if (!obstacle.empty()) fail("[test_weights] {}", obstacle);
  return WeightTester(subject, trace, options).run();
}

}  // namespace attend
