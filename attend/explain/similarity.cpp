#include "attend/explain/similarity.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/decomposition-inl.h"
#include "attend/explain/rank_correlation.h"
#include "attend/explain/stopping-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Share of the pairs that figures select.
constexpr double selected_share = 0.05;
// A rank correlation of fewer pairs is often 1 by chance.
constexpr int64_t least_pairs = 4;
constexpr const char* too_few_pairs = "both texts have one token, so they have only one pair";

const TextComparison& comparison_of(const Subject& subject) {
  const auto* found = dynamic_cast<const TextComparison*>(&subject.network());
  if (found == nullptr)
    fail(
        "pair: a model of type {} has no similarity of two texts; take a sentence encoder (model "
        "type embedder)",
        subject.model.config.type);
  return *found;
}

// Factors [.., 1] that make the product of two vectors their similarity.
Tensor factors_of(TextSimilarity measure, const Tensor& vectors) {
  // Epsilon of torch.nn.functional.normalize.
  const Tensor lengths = vectors.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
  return measure == TextSimilarity::cosine ? lengths.reciprocal() : at::ones_like(lengths);
}

void check_bilinear(TextSimilarity measure) {
  if (measure != TextSimilarity::cosine && measure != TextSimilarity::dot)
    fail(
        "pair: the model compares texts by {} (model.text_similarity), which is not a sum over "
        "pairs of tokens; cosine and dot are",
        name_of(measure));
}

// Vectors [B, D] of a batch of sources, float64 on the CPU.
Tensor text_vectors(const Subject& subject, const Batch& batch) {
  const at::NoGradGuard not_recorded;
  check_stopped();
  const Tensor vectors =
      subject.network().encodings(batch.source, batch.source_lengths, {}).detach();
  std::vector<Tensor> all;
  for (int64_t i = 0; i < vectors.size(0); ++i)
    all.push_back(comparison_of(subject).text_vectors(
        vectors[i].narrow(0, 0, batch.source_lengths[i].item<int64_t>()), {}));
  return float64_on_cpu(at::stack(all));
}

VectorGroups similarity_groups(const Subject& subject, const MethodChoice& choice) {
  const at::NoGradGuard not_recorded;
  const Tensor vectors =
      subject.network().encodings(subject.batch.source, subject.batch.source_lengths, {});
  return text_groups(subject, vectors.size(2), choice);
}

// Vectors of a text, [1 + groups, D]: complete, then without each group of the text's own tokens.
struct WithoutGroups {
  Tensor vectors;
  Tensor groups;  // int64: indices of these groups
};

WithoutGroups vectors_without(const Subject& subject, const VectorGroups& groups) {
  const Tensor is_text = text_tokens(subject);
  std::vector<int64_t> chosen;
  std::vector<std::vector<int64_t>> kept;
  for (int64_t group = 0; group < groups.count(); ++group) {
    if (!is_text[groups.members(group)[0]].item<bool>()) continue;
    chosen.push_back(group);
    kept.push_back(groups.others(group));
  }
  std::vector<Tensor> vectors = {text_vectors(subject, subject.batch)};
  const auto at_once = static_cast<size_t>(rows_at_once(subject));
  for (size_t first = 0; first < kept.size(); first += at_once) {
    const size_t last = std::min(first + at_once, kept.size());
    const auto set = [&](size_t i) { return kept.begin() + static_cast<std::ptrdiff_t>(i); };
    vectors.push_back(text_vectors(subject, with_tokens(subject, {set(first), set(last)})));
  }
  return {at::cat(vectors), at::tensor(chosen, at::kLong)};
}

// Results without pairs of groups, each [first text, second text].
struct PairTests {
  Tensor parts;   // the explanation
  Tensor losses;  // without both groups
  // Losses without either, less the loss without both. Equals the part of a pair if vectors are
  // sums of vectors that do not read each other.
  Tensor interactions;
};

PairTests pair_tests(const SimilarityParts& explained, const MethodChoice& choice) {
  const VectorGroups first = similarity_groups(explained.first, choice),
                     second = similarity_groups(explained.second, choice);
  const WithoutGroups left = vectors_without(explained.first, first),
                      right = vectors_without(explained.second, second);
  const auto scaled = [&](const Tensor& vectors) {
    return vectors * factors_of(explained.measure, vectors);
  };
  const Tensor remaining = scaled(left.vectors).matmul(scaled(right.vectors).t());
  const Tensor without_first = remaining.slice(0, 1).slice(1, 0, 1),
               without_second = remaining.slice(0, 0, 1).slice(1, 1),
               without_both = remaining.slice(0, 1).slice(1, 1), whole = remaining[0][0];
  const Tensor parts = first.together(second.together(explained.parts.t(), 1), 0);
  return {parts.index_select(0, left.groups).index_select(1, right.groups).contiguous(),
          whole - without_both, whole - without_first - without_second + without_both};
}

// Mean over the pairs with the largest parts, and over all pairs.
FigureValue of_largest(const PairTests& tests, const Tensor& amounts) {
  const int64_t pairs = tests.parts.numel();
  if (pairs < 2) return {.missing = too_few_pairs};
  const double largest = tests.parts.abs().max().item<double>();
  if ((tests.parts.max() - tests.parts.min()).item<double>() <= 1e-5 * largest)
    return {.missing = "all pairs have equal parts"};
  const auto count =
      std::max<int64_t>(1, std::llround(selected_share * static_cast<double>(pairs)));
  const Tensor best = std::get<1>(tests.parts.flatten().topk(count));
  return {amounts.flatten().index_select(0, best).mean().item<double>(),
          amounts.mean().item<double>()};
}

FigureValue rank_agreement(const PairTests& tests) {
  const Tensor interactions = tests.interactions.contiguous();
  const auto values = [](const Tensor& x) {
    return std::span<const double>(x.data_ptr<double>(), static_cast<size_t>(x.numel()));
  };
  if (tests.parts.numel() < least_pairs) return {.missing = "fewer than four pairs"};
  const auto tau = kendall_tau(values(tests.parts), values(interactions));
  if (!tau) return {.missing = "all pairs have the same value"};
  return {.value = *tau};
}

bool exceeds_all(const FigureValue& figure) { return figure.value > figure.other; }

Tensor parts_of_pairs(const SimilarityParts& explained, const MethodChoice& choice) {
  const auto parts_of = [&](const Subject& subject, const VectorGroups& groups) {
    const OutputParts made = text_vector_parts(subject, comparison_of(subject), groups);
    return float64_on_cpu(made.parts) * factors_of(explained.measure, float64_on_cpu(made.whole));
  };
  const VectorGroups first = similarity_groups(explained.first, choice),
                     second = similarity_groups(explained.second, choice);
  const Tensor pairs =
      parts_of(explained.second, second).matmul(parts_of(explained.first, first).t());
  return second.shared_out(first.shared_out(pairs).t()).t().contiguous();
}

}  // namespace

SimilarityParts similarity_parts(Subject first, Subject second, const MethodChoice& choice) {
  SimilarityParts explained{std::move(first), std::move(second)};
  explained.measure = comparison_of(explained.first).similarity();
  check_bilinear(explained.measure);
  const Tensor left = text_vectors(explained.first, explained.first.batch)[0],
               right = text_vectors(explained.second, explained.second.batch)[0];
  explained.similarity = (left * factors_of(explained.measure, left))
                             .dot(right * factors_of(explained.measure, right))
                             .item<double>();
  explained.parts = parts_of_pairs(explained, choice);
  return explained;
}

const std::vector<FigureRow>& similarity_figure_table() {
  static const std::vector<FigureRow> table = {
      {"pair_loss",
       "mean loss of similarity without both tokens of a pair, for the 5 % of pairs with the "
       "largest parts",
       "DeYoung et al. 2020", "above the mean of all pairs", true, exceeds_all, nullptr},
      {"pair_interaction",
       "mean loss of similarity that these pairs cause together: the losses without either token, "
       "less the loss without both",
       "Tsang et al. 2020", "above the mean of all pairs", true, exceeds_all, nullptr},
      {"tau_interaction",
       "Kendall's rank correlation of the parts with the losses that pairs cause together",
       "Kendall 1938", "", false, [](const FigureValue&) { return true; }, nullptr},
  };
  return table;
}

std::vector<MeasuredFigure> similarity_figures(const SimilarityParts& explained,
                                               const MethodChoice& choice) {
  const PairTests tests = pair_tests(explained, choice);
  const auto& rows = similarity_figure_table();
  return {{&rows[0], of_largest(tests, tests.losses)},
          {&rows[1], of_largest(tests, tests.interactions)},
          {&rows[2], rank_agreement(tests)}};
}

}  // namespace attend
