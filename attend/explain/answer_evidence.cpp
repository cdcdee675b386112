#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "attend/base/error.h"
#include "attend/explain/answer_evidence-inl.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/rank_correlation.h"

namespace attend {
namespace {

using at::Tensor;

// Of the tokens of a source (DeYoung et al. 2020, 4.2).
constexpr double erased_shares[] = {0.01, 0.05, 0.1, 0.2, 0.5};

std::span<const double> row_of(const Tensor& scores, int64_t row) {
  const auto length = static_cast<size_t>(scores.size(1));
  return {scores.data_ptr<double>() + static_cast<size_t>(row) * length, length};
}

// Sets of tokens without repetition: the network reads each set once.
class KeptSets {
 public:
  // The tokens first ... last - 1 of an order.
  int64_t number(const Tensor& order, int64_t first, int64_t last) {
    const Tensor sorted = std::get<0>(order.slice(0, first, last).sort());
    const std::vector<int64_t> kept(sorted.data_ptr<int64_t>(),
                                    sorted.data_ptr<int64_t>() + sorted.numel());
    const auto [place, is_new] = numbers_.try_emplace(kept, std::ssize(sets_));
    if (is_new) sets_.push_back(kept);
    return place->second;
  }

  const std::vector<std::vector<int64_t>>& sets() const { return sets_; }

 private:
  std::vector<std::vector<int64_t>> sets_;
  std::map<std::vector<int64_t>, int64_t> numbers_;
};

}  // namespace

AnswerEvidence::AnswerEvidence(const Subject& subject, const WeightTestOptions& options)
    : subject_(subject), options_(options) {
  if (subject.target.empty()) fail("the answer is empty; there is nothing to test");
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  rows_ = evenly_spaced(std::ssize(subject.target), options.rows);
  has_weights_ = why_not(find_method("attention"), subject, trace).empty();
  plain_ = float64_on_cpu(trace.log_probabilities[0].exp());
  answered_ = trace.distributions[0].argmax(1);
}

AnswerEvidence::Erased AnswerEvidence::erase(const Tensor& scores) {
  struct Asked {
    int64_t row, without, with;
  };
  if (erased_scores_.is_same(scores)) return erased_;
  KeptSets kept;
  std::vector<Asked> asked;
  const Tensor order = scores.argsort(1, /*descending=*/true);
  const int64_t length = subject_.source_length();
  for (const int64_t row : rows_) {
    for (const double share : erased_shares) {
      const auto count = std::max<int64_t>(1, std::llround(share * static_cast<double>(length)));
      asked.push_back(
          {row, kept.number(order[row], count, length), kept.number(order[row], 0, count)});
    }
  }
  const Tensor left = float64_on_cpu(answers_of(subject_, kept.sets()).log_probabilities.exp());
  Erased sum;
  for (const Asked& one : asked) {
    const double before = plain_[one.row].item<double>();
    sum.without += before - left[one.without][one.row].item<double>();
    sum.with += before - left[one.with][one.row].item<double>();
  }
  const auto count = static_cast<double>(asked.size());
  erased_scores_ = scores;
  erased_ = {sum.without / count, sum.with / count};
  return erased_;
}

AnswerEvidence::Erased AnswerEvidence::erase_in_random_order() {
  if (random_) return *random_;
  auto draws = at::make_generator<at::CPUGeneratorImpl>(options_.seed);
  random_ =
      erase(at::rand({subject_.target_length(), subject_.source_length()}, draws, at::kDouble));
  return *random_;
}

void AnswerEvidence::read_without_each() {
  if (changed_.defined()) return;
  const KeptAnswers without = answers_of(subject_, leave_one_out(subject_));
  const Tensor moved = plain_ - without.log_probabilities.exp().to(at::kDouble);
  occlusion_ = float64_on_cpu(moved.abs().t());
  changed_ = (without.answers != answered_.unsqueeze(0)).t().contiguous();
}

double AnswerEvidence::flips_of_largest(const Tensor& scores) {
  read_without_each();
  double sum = 0;
  for (const int64_t row : rows_)
    sum += changed_[row][scores[row].argmax().item<int64_t>()].item<bool>() ? 1 : 0;
  return sum / static_cast<double>(rows_.size());
}

double AnswerEvidence::flips_of_any() {
  read_without_each();
  return changed_.index_select(0, at::tensor(rows_)).to(at::kDouble).mean().item<double>();
}

const WeightTests* AnswerEvidence::weight_tests() {
  if (!has_weights_) return nullptr;
  if (!weights_) weights_ = test_weights(subject_, options_);
  return &*weights_;
}

double AnswerEvidence::tau(const Tensor& a, const Tensor& b) const {
  double sum = 0;
  for (const int64_t row : rows_) sum += kendall_tau(row_of(a, row), row_of(b, row));
  return sum / static_cast<double>(rows_.size());
}

const Tensor& AnswerEvidence::gradient() {
  if (!gradient_.defined()) gradient_ = method_scores(find_method("held_gradient"), subject_);
  return gradient_;
}

const Tensor& AnswerEvidence::occlusion() {
  read_without_each();
  return occlusion_;
}

Tensor AnswerEvidence::untrained_scores(const MethodRow& method) {
  if (!untrained_) {
    untrained_ = subject_.model;
    untrained_->network = subject_.model.make_network();
    untrained_->network->eval();
    untrained_->network->to(subject_.model.network->parameters()[0].scalar_type());
  }
  const Subject other{*untrained_, subject_.batch, subject_.source, subject_.target};
  return method_scores(method, other);
}

}  // namespace attend
