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

namespace attend {
namespace {

using at::Tensor;

// The shares of a source's tokens (DeYoung et al. 2020, 4.2).
constexpr double erased_shares[] = {0.01, 0.05, 0.1, 0.2, 0.5};

// A rank correlation of fewer things takes few values, and is often 1 by chance.
constexpr int64_t least_ranked = 4;

std::span<const double> values_of(const Tensor& row) {
  return {row.data_ptr<double>(), static_cast<size_t>(row.numel())};
}

std::vector<int64_t> kept_tokens(const Tensor& tokens) {
  const Tensor sorted = std::get<0>(tokens.sort());
  return {sorted.data_ptr<int64_t>(), sorted.data_ptr<int64_t>() + sorted.numel()};
}

// Lets `seed` alone say what LibTorch's default generator draws while it lives, and puts that back
// as it was. Modules draw their weights from it.
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

AnswerEvidence::AnswerEvidence(const Subject& subject, const WeightTestOptions& options)
    : subject_(subject), options_(options) {
  if (subject.model.answers_numbers())
    fail("evidence is of probabilities, and the answer is a number, which has none");
  if (subject.target.empty()) fail("the answer is empty; there is nothing to test");
  trace_ = trace_network(subject.network(), subject.batch);
  rows_ = asked_places(subject, options.rows);
  has_weights_ = why_no_weights(subject, trace_).empty();
  const Tensor seen = considered(subject, trace_.distributions)[0];
  const Tensor target = subject.batch.target[0].to(seen.device());
  plain_ = float64_on_cpu(seen.gather(1, target.unsqueeze(1)).squeeze(1).exp());
  answered_ = seen.argmax(1);
}

void AnswerEvidence::read_kept(const std::set<std::vector<int64_t>>& sets) {
  std::vector<std::vector<int64_t>> unread;
  for (const auto& one : sets)
    if (!kept_.contains(one)) unread.push_back(one);
  if (unread.empty()) return;
  // Sources of a pass are padded to its longest.
  std::stable_sort(unread.begin(), unread.end(),
                   [](const auto& one, const auto& other) { return one.size() < other.size(); });
  const Tensor left = float64_on_cpu(answers_of(subject_, unread).probabilities);
  for (size_t i = 0; i < unread.size(); ++i)
    kept_.emplace(std::move(unread[i]), left[static_cast<int64_t>(i)]);
}

Tensor AnswerEvidence::scope(const MethodRow& method, const MethodChoice& choice) {
  MethodChoice own = choice;
  own.tokens = rows_;
  if (method.scope != nullptr) return method_scope(method, subject_, trace_, own);
  if (!reached_.defined()) reached_ = method_scope(method, subject_, trace_, own);
  return reached_;
}

std::optional<AnswerEvidence::Erased> AnswerEvidence::erase(const Tensor& scores,
                                                            const Tensor& scope) {
  struct Asked {
    int64_t row;
    std::vector<int64_t> without, with;
  };
  if (erased_scores_.is_same(scores)) return erased_;
  std::vector<Asked> asked;
  std::set<std::vector<int64_t>> sets;
  for (const int64_t row : rows_) {
    const Tensor keys = scope[row].nonzero().squeeze(1);
    const Tensor others = scope[row].logical_not().nonzero().squeeze(1);
    const Tensor order =
        keys.index_select(0, scores[row].index_select(0, keys).argsort(0, /*descending=*/true));
    for (const double share : erased_shares) {
      if (keys.size(0) == 0) break;
      const auto count =
          std::max<int64_t>(1, std::llround(share * static_cast<double>(keys.size(0))));
      asked.push_back({row, kept_tokens(at::cat({order.slice(0, count), others})),
                       kept_tokens(at::cat({order.slice(0, 0, count), others}))});
      sets.insert({asked.back().without, asked.back().with});
    }
  }
  erased_scores_ = scores;
  erased_.reset();
  if (asked.empty()) return erased_;
  read_kept(sets);
  Erased sum;
  for (const Asked& one : asked) {
    const double before = plain_[one.row].item<double>();
    sum.without += before - kept_.at(one.without)[one.row].item<double>();
    sum.with += before - kept_.at(one.with)[one.row].item<double>();
  }
  const auto count = static_cast<double>(asked.size());
  erased_ = Erased{sum.without / count, sum.with / count};
  return erased_;
}

std::optional<AnswerEvidence::Erased> AnswerEvidence::erase_in_random_order(const Tensor& scope) {
  if (random_scope_.defined() && random_scope_.equal(scope)) return random_;
  auto draws = at::make_generator<at::CPUGeneratorImpl>(options_.seed);
  random_scope_ = scope;
  random_ = erase(
      at::rand({subject_.target_length(), subject_.source_length()}, draws, at::kDouble), scope);
  return random_;
}

void AnswerEvidence::read_without_each() {
  if (changed_.defined()) return;
  const KeptAnswers without = answers_of(subject_, leave_one_out(subject_));
  const Tensor moved = plain_ - without.probabilities.to(at::kDouble);
  occlusion_ = float64_on_cpu(moved.abs().t());
  changed_ = (without.answers != answered_.unsqueeze(0)).t().contiguous();
}

FigureValue AnswerEvidence::flips_by_token(const Tensor& scores, const Tensor& scope) {
  if (subject_.source_length() < 2) return {.missing = "the source has one token"};
  read_without_each();
  double of_largest = 0, of_others = 0, count = 0;
  for (const int64_t row : rows_) {
    const Tensor keys = scope[row].nonzero().squeeze(1);
    if (keys.size(0) < 2) continue;
    const Tensor changed = changed_[row].index_select(0, keys);
    const Tensor best = scores[row].index_select(0, keys).argmax();
    const double largest = changed[best.item<int64_t>()].item<bool>() ? 1 : 0;
    of_largest += largest;
    of_others += (changed.sum().item<double>() - largest) / static_cast<double>(keys.size(0) - 1);
    ++count;
  }
  if (count == 0) return {.missing = "no token has two keys in scope"};
  return {of_largest / count, of_others / count};
}

const WeightTests* AnswerEvidence::weight_tests() {
  if (!has_weights_) return nullptr;
  if (!weights_) weights_ = test_weights(subject_, options_);
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

const Tensor& AnswerEvidence::gradient() {
  if (!gradient_.defined())
    gradient_ = method_scores(find_method("held_gradient"), subject_, trace_, {.tokens = rows_});
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
