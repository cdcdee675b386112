#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <set>
#include <span>

#include "attend/base/error.h"
#include "attend/explain/answer_evidence-inl.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/rank_correlation.h"
#include "attend/explain/vector_groups-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Shares of a source's tokens to erase (DeYoung et al. 2020, 4.2).
constexpr double erased_shares[] = {0.01, 0.05, 0.1, 0.2, 0.5};

// A rank correlation of fewer items takes few values, and is often 1 by chance.
constexpr int64_t least_ranked = 4;

std::span<const double> values_of(const Tensor& row) {
  return {row.data_ptr<double>(), static_cast<size_t>(row.numel())};
}

// Tokens in a scope [S].
Tensor keys_in(const Tensor& scope) { return scope.nonzero().squeeze(1); }

std::vector<int64_t> chosen_places(const Tensor& chosen) {
  const Tensor places = keys_in(chosen);
  return {places.data_ptr<int64_t>(), places.data_ptr<int64_t>() + places.numel()};
}

// Number of tokens per share; empty for fewer than two tokens, which have no order.
std::vector<int64_t> erased_counts(int64_t keys) {
  std::vector<int64_t> counts;
  for (const double share : erased_shares)
    if (keys >= 2)
      counts.push_back(std::max<int64_t>(1, std::llround(share * static_cast<double>(keys))));
  return counts;
}

// Returns sets of `count` keys. `ranks` [orders, S] holds ranks of keys. If at most `orders` sets
// are possible, returns all of them, otherwise the first `count` keys of each order.
std::vector<Tensor> removed_sets(const Tensor& keys, int64_t count, const Tensor& ranks) {
  const int64_t size = keys.size(0), orders = ranks.size(0);
  double possible = 1;
  for (int64_t i = 0; i < count; ++i)
    possible *= static_cast<double>(size - i) / static_cast<double>(i + 1);
  std::vector<Tensor> sets;
  if (std::llround(possible) > orders) {
    const Tensor order = ranks.index_select(1, keys).argsort(1, /*descending=*/false);
    for (int64_t i = 0; i < orders; ++i)
      sets.push_back(keys.index_select(0, order[i].slice(0, 0, count)));
    return sets;
  }
  std::vector<int64_t> chosen(static_cast<size_t>(size), 0);
  std::fill_n(chosen.begin(), count, 1);
  do {
    sets.push_back(keys.masked_select(at::tensor(chosen).to(at::kBool)));
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return sets;
}

// Seeds LibTorch's default generator, from which modules draw their weights, and restores it at the
// end of its lifetime.
class SeededDefault {
 public:
  explicit SeededDefault(uint64_t seed) : lock_(mutex()) {
    generator_ = at::detail::getDefaultCPUGenerator();
    before_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~SeededDefault() { generator_.set_state(before_); }
  SeededDefault(const SeededDefault&) = delete;
  SeededDefault& operator=(const SeededDefault&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex only;
    return only;
  }

  std::lock_guard<std::mutex> lock_;
  at::Generator generator_;
  Tensor before_;
};

std::shared_ptr<PairNetwork> new_network(const PairModel& model, uint64_t seed) {
  const SeededDefault draws(seed);
  auto network = model.make_network();
  network->eval();
  network->to(model.network->parameters()[0].scalar_type());
  for (const Tensor& each : network->parameters()) each.requires_grad_(false);
  return network;
}

}  // namespace

AnswerEvidence::AnswerEvidence(const Explanation& explanation, const WeightTestOptions& options)
    : explanation_(explanation), subject_(explanation.subject()), options_(options) {
  if (const AnswerKind& kind = subject_.model.answer_kind(); !kind.has_probabilities())
    fail("evidence needs probabilities, and the answer is a {}; leave evidence out", kind.name());
  if (subject_.target.empty()) fail("the answer is empty; there is nothing to test");
  rows_ = asked_places(subject_, options.rows);
  has_weights_ = no_weights_reason(subject_, trace()).empty();
  const Tensor seen = considered(subject_, trace().distributions)[0];
  const Tensor target = subject_.batch.target[0].to(seen.device());
  plain_ = float64_on_cpu(seen.gather(1, target.unsqueeze(1)).squeeze(1).exp());
  answered_ = seen.argmax(1);
}

void AnswerEvidence::read_kept(const std::set<std::vector<int64_t>>& sets) {
  std::vector<std::vector<int64_t>> unread;
  for (const auto& one : sets)
    if (!kept_.contains(one)) unread.push_back(one);
  if (unread.empty()) return;
  // The sources of a pass are padded to the longest.
  std::stable_sort(unread.begin(), unread.end(),
                   [](const auto& one, const auto& other) { return one.size() < other.size(); });
  const Tensor left = float64_on_cpu(answers_of(subject_, unread).probabilities);
  for (size_t i = 0; i < unread.size(); ++i)
    kept_.emplace(std::move(unread[i]), left[static_cast<int64_t>(i)]);
}

Tensor AnswerEvidence::scope(const MethodRow& method, const MethodChoice& choice) {
  MethodChoice own = choice;
  own.tokens = rows_;
  const auto text_scope = [&] {
    return method_scope(method, subject_, trace(), own).logical_and(text_tokens(subject_));
  };
  if (method.scope != nullptr) return text_scope();
  if (!reached_.defined()) reached_ = text_scope();
  return reached_;
}

AnswerEvidence::Erasure AnswerEvidence::erasure(const Tensor& removed,
                                                const Tensor& row_scope) const {
  const Tensor kept = at::ones_like(row_scope).index_fill_(0, removed, false);
  const Tensor rest = row_scope.logical_not().index_fill_(0, removed, true);
  return {chosen_places(kept), chosen_places(rest)};
}

std::optional<AnswerEvidence::Erased> AnswerEvidence::mean_of(const std::vector<RowErasures>& all) {
  if (all.empty()) return std::nullopt;
  std::set<std::vector<int64_t>> sets;
  for (const RowErasures& one : all)
    for (const Erasure& each : one.sets) sets.insert({each.without, each.with});
  read_kept(sets);
  Erased sum;
  for (const auto& [row, own] : all) {
    const double before = plain_[row].item<double>();
    const auto count = static_cast<double>(std::ssize(own) * std::ssize(all));
    for (const auto& [without, with] : own) {
      sum.without += (before - kept_.at(without)[row].item<double>()) / count;
      sum.with += (before - kept_.at(with)[row].item<double>()) / count;
    }
  }
  return sum;
}

std::optional<AnswerEvidence::Erased> AnswerEvidence::erase(const Tensor& scores,
                                                            const Tensor& scope) {
  if (erased_scores_.is_same(scores)) return erased_;
  std::vector<RowErasures> all;
  for (const int64_t row : rows_) {
    const Tensor keys = keys_in(scope[row]);
    const Tensor order =
        keys.index_select(0, scores[row].index_select(0, keys).argsort(0, /*descending=*/true));
    for (const int64_t count : erased_counts(keys.size(0)))
      all.push_back({row, {erasure(order.slice(0, 0, count), scope[row])}});
  }
  erased_scores_ = scores;
  return erased_ = mean_of(all);
}

std::optional<AnswerEvidence::Erased> AnswerEvidence::erase_in_random_order(const Tensor& scope) {
  if (random_scope_.defined() && random_scope_.equal(scope)) return random_;
  const auto draws = at::make_generator<at::CPUGeneratorImpl>(options_.seed);
  // An order takes two passes per size.
  const int64_t affordable = affordable_passes(subject_, {}) / (2 * std::ssize(erased_shares));
  const int64_t orders = std::clamp<int64_t>(affordable, 1, options_.orders);
  // Rows with equal scopes share their orders, and so the cached answers.
  const Tensor ranks = at::rand({orders, subject_.source_length()}, draws, at::kDouble);
  std::vector<RowErasures> all;
  for (const int64_t row : rows_) {
    const Tensor keys = keys_in(scope[row]);
    for (const int64_t count : erased_counts(keys.size(0))) {
      RowErasures own{row, {}};
      for (const Tensor& removed : removed_sets(keys, count, ranks))
        own.sets.push_back(erasure(removed, scope[row]));
      all.push_back(std::move(own));
    }
  }
  random_scope_ = scope;
  return random_ = mean_of(all);
}

void AnswerEvidence::read_without_each() {
  if (changed_.defined()) return;
  const std::vector<int64_t> shape = {subject_.target_length(), subject_.source_length()};
  occlusion_ = at::zeros(shape, at::kDouble);
  changed_ = at::zeros(shape, at::kBool);
  const Tensor left_out = keys_in(text_tokens(subject_));
  if (left_out.numel() == 0) return;
  const KeptAnswers without = answers_of(subject_, leave_one_out(subject_, left_out));
  const Tensor moved = plain_ - float64_on_cpu(without.probabilities);
  occlusion_.index_copy_(1, left_out, moved.t());
  changed_.index_copy_(1, left_out, (without.answers != answered_.unsqueeze(0)).t().cpu());
}

FigureValue AnswerEvidence::flips_by_token(const Tensor& scores, const Tensor& scope) {
  if (subject_.source_length() < 2) return {.missing = "the source has one token"};
  read_without_each();
  double largest_sum = 0, others_sum = 0, count = 0;
  for (const int64_t row : rows_) {
    const Tensor keys = scope[row].nonzero().squeeze(1);
    if (keys.size(0) < 2) continue;
    const Tensor changed = changed_[row].index_select(0, keys);
    const Tensor best = scores[row].index_select(0, keys).argmax();
    const double largest = changed[best.item<int64_t>()].item<bool>() ? 1 : 0;
    largest_sum += largest;
    others_sum += (changed.sum().item<double>() - largest) / static_cast<double>(keys.size(0) - 1);
    ++count;
  }
  if (count == 0) return {.missing = "no token has two keys in scope"};
  return {largest_sum / count, others_sum / count};
}

const WeightTests* AnswerEvidence::weight_tests() {
  if (!has_weights_) return nullptr;
  if (!weights_) weights_ = test_weights(explanation_, options_);
  return &*weights_;
}

FigureValue AnswerEvidence::tau(const MappedScores& map, const std::vector<Tensor>& others) const {
  double sum = 0;
  int64_t count = 0;
  bool ranked = false;
  for (const int64_t row : rows_) {
    const Tensor keys = map.scope[row].nonzero().squeeze(1);
    if (keys.size(0) < least_ranked) continue;
    ranked = true;
    const Tensor own = map.scores[row].index_select(0, keys);
    for (const Tensor& other : others) {
      const auto tau = kendall_tau(values_of(own), values_of(other[row].index_select(0, keys)));
      sum += tau.value_or(0);
      count += tau ? 1 : 0;
    }
  }
  if (!ranked) return {.missing = "no token has four keys in scope"};
  if (count == 0) return {.missing = "one of the maps has no order"};
  return {sum / static_cast<double>(count)};
}

FigureValue AnswerEvidence::tau_with_amounts(const MappedScores& map, const Tensor& amounts) const {
  return tau(map, {map.method.scale == ScoreScale::amounts ? amounts : amounts.abs()});
}

const Tensor& AnswerEvidence::gradient() {
  if (gradient_.defined()) return gradient_;
  const at::AutoGradMode records(true);
  gradient_ = held_amounts(subject_, trace(), {.tokens = rows_}).contiguous();
  return gradient_;
}

const Tensor& AnswerEvidence::occlusion() {
  read_without_each();
  return occlusion_;
}

Subject AnswerEvidence::untrained_subject(const Untrained& one) const {
  return {.model = *one.model,
          .batch = subject_.batch,
          .source = subject_.source,
          .target = subject_.target,
          .against = subject_.against};
}

std::vector<Tensor> AnswerEvidence::untrained_scores(const MethodRow& method,
                                                     const MethodChoice& choice) {
  for (int64_t i = std::ssize(untrained_); i < options_.networks; ++i) {
    Untrained one{std::make_unique<PairModel>(subject_.model), {}};
    one.model->network = new_network(subject_.model, options_.seed + static_cast<uint64_t>(i));
    one.trace = trace_network(*one.model->network, subject_.batch);
    untrained_.push_back(std::move(one));
  }
  MethodChoice own = choice;
  own.tokens = rows_;
  std::vector<Tensor> scores;
  for (const Untrained& one : untrained_)
    scores.push_back(method_scores(method, untrained_subject(one), one.trace, own));
  return scores;
}

}  // namespace attend
