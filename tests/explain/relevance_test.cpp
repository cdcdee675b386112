#include <gtest/gtest.h>

#include <algorithm>

#include "attend/explain/methods.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace relevance_test {

using at::Tensor;
using test::small_model;
using test::SmallModel;

// Logit of the answer's token t after a change of one weight.
double answer_by(const Subject& subject, const Site& site, int64_t token,
                 const std::vector<int64_t>& place, double more) {
  TraceOptions options;
  options.weights = [&](const Site& own, size_t, const Tensor& weights) {
    if (!(own == site)) return Tensor();
    Tensor result = weights.clone();
    result[0][place[0]][place[1]][place[2]] += more;
    return result;
  };
  const NetworkTrace trace = trace_network(subject.network(), subject.batch, options);
  const Tensor logits = trace.logits[0].dim() == 1 ? trace.logits[0] : trace.logits[0][token];
  const int64_t before = trace.distributions.size(2) - logits.size(0);
  return logits[subject.batch.target[0][token].item<int64_t>() - before].item<double>();
}

// Chefer et al. 2021, eq. 5, with slopes by differences.
Tensor relevant_by_hand(const Subject& subject, const TracedAttention& attention, int64_t token) {
  const Tensor weights = traced_weights(attention).detach();
  Tensor sum = at::zeros({weights.size(1), weights.size(2)}, at::kDouble);
  constexpr double step = 1e-5;
  for (int64_t head = 0; head < weights.size(0); ++head)
    for (int64_t i = 0; i < weights.size(1); ++i)
      for (int64_t j = 0; j < weights.size(2); ++j) {
        const auto answer = [&](double more) {
          return answer_by(subject, attention.site, token, {head, i, j}, more);
        };
        const double slope = (answer(step) - answer(-step)) / (2 * step);
        sum[i][j] += std::max(0.0, slope * weights[head][i][j].item<double>());
      }
  return sum / static_cast<double>(weights.size(0));
}

Tensor evened(const Tensor& relevance) {
  const Tensor own = at::eye(relevance.size(0), at::kDouble), others = relevance - own;
  const Tensor sums = others.sum(1, true);
  return others / at::where(sums > 0, sums, at::ones_like(sums)) + own;
}

TEST(Relevance, FollowsOneStackByItsRule) {
  const SmallModel small = small_model("classifier_class");
  const Subject subject = small.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  Tensor all = at::eye(6, at::kDouble);
  for (const TracedAttention& one : trace.attentions)
    all = all + relevant_by_hand(subject, one, 0).matmul(all);
  const Tensor scores = method_scores(find_method("relevance"), subject);
  EXPECT_LE((scores - all.slice(0, 0, 1).slice(1, 1)).abs().max().item<double>(), 1e-7);
}

// The initial identity of each token would hide all other tokens.
TEST(Relevance, LeavesOutWhatEachVectorIsToItself) {
  const SmallModel small = small_model("classifier_mean");
  const Subject subject = small.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  Tensor all = at::eye(5, at::kDouble);
  for (const TracedAttention& one : trace.attentions)
    all = all + relevant_by_hand(subject, one, 0).matmul(all);
  const Tensor wanted = (all - at::eye(5, at::kDouble)).mean(0);
  const Tensor scores = method_scores(find_method("relevance"), subject)[0];
  EXPECT_LE((scores - wanted).abs().max().item<double>(), 1e-7);
}

// A nearly certain answer has the map of its logit.
TEST(Relevance, OfASureAnswerIsThatOfItsLogit) {
  const SmallModel small = small_model("classifier_class");
  const Subject subject = small.subject();
  const Tensor before = method_scores(find_method("relevance"), subject);
  const at::NoGradGuard not_recorded;
  Tensor bias = small.model.network->named_parameters()["output.bias"];
  const int64_t label = subject.batch.target[0][0].item<int64_t>() - (Vocabulary::unknown + 1);
  bias[label] += 30;
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  ASSERT_GT(trace.log_probabilities.item<double>(), -1e-9);
  const Tensor after = method_scores(find_method("relevance"), subject);
  EXPECT_GT(before.max().item<double>(), 0);
  EXPECT_LE((before - after).abs().max().item<double>(), 1e-12);
}

TEST(Relevance, FollowsADecoderByItsRules) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  const int64_t token = 2;
  const auto map = [&](size_t i) { return relevant_by_hand(subject, trace.attentions[i], token); };
  Tensor encoder = at::eye(5, at::kDouble), decoder = at::eye(4, at::kDouble);
  Tensor read = at::zeros({4, 5}, at::kDouble);
  for (const size_t i : {0, 1}) encoder = encoder + map(i).matmul(encoder);
  for (const size_t i : {2, 4}) {
    const Tensor own = map(i);
    read = read + own.matmul(read);
    decoder = decoder + own.matmul(decoder);
    read = read + evened(decoder).t().matmul(map(i + 1)).matmul(evened(encoder));
  }
  const Tensor scores = method_scores(find_method("relevance"), subject);
  EXPECT_LE((scores[token] - read[token]).abs().max().item<double>(), 1e-7);
}

}  // namespace relevance_test
}  // namespace attend
