#include "attend/explain/methods.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace methods_test {

using at::Tensor;
using test::small_model;
using test::small_models;
using test::SmallModel;
using testing::HasSubstr;

NetworkTrace traced(const Subject& subject) {
  return trace_network(subject.network(), subject.batch, {.gradients = true});
}

// log p of the target's tokens [T] after `shift` was added to the source's vectors.
Tensor shifted_answer(const Subject& subject, const Tensor& shift) {
  TraceOptions options;
  const int64_t before =
      subject.network().top_vectors(subject.source_length(), subject.target_length()).before_source;
  options.input = [&](const Tensor& input) {
    Tensor result = input.detach().clone();
    const int64_t first = input.size(1) == subject.source_length() ? 0 : before;
    result.narrow(1, first, subject.source_length()) += shift;
    return result;
  };
  return trace_network(subject.network(), subject.batch, options).log_probabilities[0].detach();
}

int64_t input_depth(const Subject& subject) { return traced(subject).input.size(2); }

bool has_signed_weights(const NetworkTrace& trace) {
  return std::any_of(trace.attentions.begin(), trace.attentions.end(),
                     [](const TracedAttention& one) { return one.has_signed_weights(); });
}

TEST(Methods, EveryTypeOfModelAnswersOrSaysWhyNot) {
  int64_t answered = 0, refused = 0;
  for (const SmallModel& small : small_models()) {
    const Subject subject = small.subject();
    for (const MethodRow& row : method_table()) {
      SCOPED_TRACE(small.name + ' ' + row.name);
      const std::string obstacle = refusal_reason(row, subject, traced(subject));
      if (!obstacle.empty()) {
        ++refused;
        EXPECT_THAT(test::error_of([&] { method_scores(row, subject); }), HasSubstr(obstacle));
        continue;
      }
      ++answered;
      const Tensor scores = method_scores(row, subject);
      ASSERT_EQ(scores.sizes(),
                (at::IntArrayRef{subject.target_length(), subject.source_length()}));
      EXPECT_TRUE(at::isfinite(scores).all().item<bool>());
      const bool is_signed =
          row.scale == ScoreScale::amounts || has_signed_weights(traced(subject));
      EXPECT_TRUE(is_signed || (scores >= 0).all().item<bool>());
    }
  }
  EXPECT_GT(answered, 90);
  EXPECT_GT(refused, 20);
}

// The advice of a refusal leads to an applicable method, if necessary over several refusals.
TEST(Methods, AdviceLeadsToAMethodThatAnswers) {
  std::vector<SmallModel> models = small_models();
  for (SmallModel& model : test::models_with_rules()) models.push_back(std::move(model));
  models.emplace_back("classifier_sum", "classifier",
                      std::vector<std::string>{"model.depth=8", "model.pooling=sum"});
  const auto names = [](const std::string& text) {
    std::vector<const MethodRow*> named;
    for (const MethodRow& row : method_table())
      if (text.find("take " + std::string(row.name)) != std::string::npos ||
          text.find("or " + std::string(row.name)) != std::string::npos)
        named.push_back(&row);
    if (text.find("method of gradients") != std::string::npos)
      named.push_back(&find_method("gradient"));
    return named;
  };
  int64_t advised = 0;
  for (const SmallModel& small : models) {
    const Subject subject = small.subject();
    const NetworkTrace trace = traced(subject);
    for (const MethodRow& row : method_table()) {
      SCOPED_TRACE(small.name + ' ' + row.name);
      std::string obstacle = refusal_reason(row, subject, trace);
      int64_t turns = 0;
      for (; !obstacle.empty() && turns < 4; ++turns) {
        const auto named = names(obstacle);
        if (named.empty()) break;  // gives a reason without advice
        obstacle = refusal_reason(*named[0], subject, trace);
      }
      EXPECT_LT(turns, 4) << obstacle;
      advised += turns > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(advised, 30);
}

TEST(Methods, GradientsAreThoseOfDifferences) {
  for (const SmallModel& small : small_models()) {
    SCOPED_TRACE(small.name);
    const Subject subject = small.subject();
    const int64_t depth = input_depth(subject);
    constexpr double step = 1e-5;
    const Tensor squares =
        at::zeros({subject.target_length(), subject.source_length()}, at::kDouble);
    for (int64_t j = 0; j < subject.source_length(); ++j) {
      for (int64_t k = 0; k < depth; ++k) {
        Tensor shift = at::zeros({1, subject.source_length(), depth}, at::kDouble);
        shift[0][j][k] = step;
        const Tensor slope =
            (shifted_answer(subject, shift) - shifted_answer(subject, -shift)) / (2 * step);
        squares.select(1, j) += slope.square();
      }
    }
    const Tensor scores = method_scores(find_method("gradient"), subject);
    EXPECT_LE((scores - squares.sqrt()).abs().max().item<double>(), 1e-6);
  }
}

TEST(Methods, TokensThatAreAskedForAreAsAmongAll) {
  for (const char* name : {"seq2seq", "transformer", "encoder"}) {
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const NetworkTrace trace = traced(subject);
    for (const MethodRow& row : method_table()) {
      if (!refusal_reason(row, subject, trace).empty()) continue;
      SCOPED_TRACE(std::string(name) + ' ' + row.name);
      const Tensor all = method_scores(row, subject, trace);
      const Tensor some = method_scores(row, subject, trace, {.tokens = {0, 2}});
      for (const int64_t token : {0, 2})
        EXPECT_LE((all[token] - some[token]).abs().max().item<double>(), 1e-9);
    }
  }
}

TEST(Methods, IntegratedGradientsAddUpToTheWholeDifference) {
  for (const SmallModel& small : small_models()) {
    // Chosen keys change along the path, so that the answer jumps.
    const std::set<std::string> choose = {"lm_sparse", "lm_blocks", "lm_indexed"};
    if (choose.contains(small.name)) continue;
    SCOPED_TRACE(small.name);
    const Subject subject = small.subject();
    Batch blank = subject.batch;
    blank.source = with_unknown(subject, text_tokens(subject));
    // For a fill-in model an unknown token and a hidden token are different inputs.
    if (small.model.answer_kind().fills()) continue;
    const Tensor difference = (traced(subject).log_probabilities -
                               trace_network(subject.network(), blank).log_probabilities)[0]
                                  .detach();
    const Tensor sum = method_scores(find_method("integrated_gradients"), subject).sum(1);
    const double scale = difference.abs().max().item<double>();
    EXPECT_LE((sum - difference).abs().max().item<double>(), 0.01 * scale + 1e-9);
  }
}

TEST(Methods, RollOutIsTheProductOfTheLayers) {
  const SmallModel small = small_model("classifier_class");
  const Subject subject = small.subject();
  const NetworkTrace trace = traced(subject);
  ASSERT_EQ(trace.attentions.size(), 2U);
  Tensor product = at::eye(6, at::kDouble);
  for (const TracedAttention& one : trace.attentions) {
    const Tensor mean = traced_weights(one).detach().mean(0);
    product = (0.5 * mean + 0.5 * at::eye(6, at::kDouble)).matmul(product);
  }
  const Tensor scores = method_scores(find_method("rollout"), subject);
  EXPECT_LE((scores - product.slice(0, 0, 1).slice(1, 1)).abs().max().item<double>(), 1e-6);
}

TEST(Methods, RollOutFollowsADecoder) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const NetworkTrace trace = traced(subject);
  ASSERT_EQ(trace.attentions.size(), 6U);  // encoder 1, 2; decoder 1 self, source; decoder 2
  const auto mean = [&](size_t i) { return traced_weights(trace.attentions[i]).detach().mean(0); };
  const auto half = [&](size_t i) {
    return 0.5 * (mean(i) + at::eye(mean(i).size(0), at::kDouble));
  };
  const Tensor encoder = half(1).matmul(half(0));
  const Tensor first = 0.5 * mean(3).matmul(encoder);
  const Tensor second = 0.5 * half(4).matmul(first) + 0.5 * mean(5).matmul(encoder);
  const Tensor scores = method_scores(find_method("rollout"), subject);
  EXPECT_LE((scores - second).abs().max().item<double>(), 1e-12);
}

// With one layer there is one path from the answer to each token.
TEST(Methods, FlowThroughOneLayerIsItsWeight) {
  const SmallModel small(
      "one", "classifier",
      {"model.depth=8", "model.heads=2", "model.layers=1", "model.pooling=class"});
  const Subject subject = small.subject();
  const Tensor flow = method_scores(find_method("flow"), subject);
  const Tensor weights =
      layer_map(subject, traced(subject).attentions[0]).slice(0, 0, 1).slice(1, 1);
  EXPECT_LE((flow - weights).abs().max().item<double>(), 1e-8);
}

TEST(Methods, WhatFollowsSharesRefusesWeightsBelowZero) {
  const SmallModel small("signed", "classifier",
                         {"model.depth=8", "model.heads=2", "model.layers=1",
                          "model.normaliser=none", "model.pooling=class"});
  for (const char* name : {"flow", "rollout"})
    EXPECT_THAT(test::error_of([&] { method_scores(find_method(name), small.subject()); }),
                HasSubstr("weights may be negative"));
  EXPECT_TRUE(
      at::isfinite(method_scores(find_method("attention"), small.subject())).all().item<bool>());
}

TEST(Methods, FlowIsAtLeastRollOut) {
  const SmallModel small = small_model("classifier_mean");
  const Subject subject = small.subject();
  const Tensor flow = method_scores(find_method("flow"), subject);
  const Tensor rolled = method_scores(find_method("rollout"), subject);
  EXPECT_TRUE((flow >= rolled - 1e-7).all().item<bool>());
  EXPECT_LE(flow.max().item<double>(), 1 + 1e-7);
}

// The vectors used for norms sum to the layer's output without bias.
TEST(Methods, PartsOfTheNormsAddUpToTheOutputOfTheLayer) {
  for (const char* name : {"transformer", "classifier_class", "lm", "classifier_fixed", "seq2seq",
                           "lm_gated", "transformer_differential", "encoder_latent", "lm_selective",
                           "lm_segments", "lm_mixed", "lm_sparse", "lm_blocks", "lm_indexed"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const NetworkTrace trace = traced(subject);
    const TracedAttention& last = *answer_attention(trace, {});
    const Tensor parts = ValueParts(last, {}, at::kDouble)
                             .rows(traced_weights(last).detach(), 0);  // [rows, columns, depth]
    Tensor output;
    std::vector<Tensor> steps;
    for (const AttentionCall& call : last.calls) {
      Tensor context = call.result.context.detach();  // [1, H, T, Dv] or [1, T, Dv]
      if (context.dim() == 3) context = context.unsqueeze(1);
      const Tensor whole = context.transpose(1, 2).flatten(2);
      if (call.output.defined())
        context = (call.factors.defined() ? whole * call.factors.detach() : whole)
                      .matmul(call.output.detach().t());
      else
        context = context.sum(1);
      steps.push_back(context[0]);
    }
    output = last.in_steps() ? at::cat(steps) : at::stack(steps).sum(0);
    EXPECT_LE((parts.sum(1) - output).abs().max().item<double>(), 1e-5);
    if (!last.site.reads_source) continue;
    const Tensor norms = method_scores(find_method("norms"), subject);
    EXPECT_LE((norms - parts.norm(2, 2)).abs().max().item<double>(), 1e-12);
  }
}

TEST(Methods, ShiftedAlignmentIsThatOfTheNextStep) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const Tensor weights = method_scores(find_method("attention"), subject);
  const Tensor shifted = method_scores(find_method("shifted"), subject);
  EXPECT_TRUE(shifted.slice(0, 0, 3).equal(weights.slice(0, 1)));
}

TEST(Methods, TheJacobianIsThatOfDifferences) {
  const SmallModel small = small_model("classifier_recurrent");
  const Subject subject = small.subject();
  const int64_t depth = input_depth(subject);
  constexpr double step = 1e-5;
  const auto answer = [&](const Tensor& shift) {
    TraceOptions options;
    options.input = [&](const Tensor& input) { return input.detach() + shift; };
    return trace_network(subject.network(), subject.batch, options)
        .distributions[0][0]
        .slice(0, Vocabulary::unknown + 1)
        .detach();
  };
  Tensor squares = at::zeros({subject.source_length()}, at::kDouble);
  for (int64_t j = 0; j < subject.source_length(); ++j) {
    for (int64_t k = 0; k < depth; ++k) {
      Tensor shift = at::zeros({1, subject.source_length(), depth}, at::kDouble);
      shift[0][j][k] = step;
      squares[j] += ((answer(shift) - answer(-shift)) / (2 * step)).square().sum();
    }
  }
  const Tensor scores = method_scores(find_method("jacobian"), subject)[0];
  EXPECT_LE((scores - squares.sqrt()).abs().max().item<double>(), 1e-6);
}

// The derivative with respect to a weight is compared with differences of the network's answers.
TEST(Methods, AttentionXGradientIsThatOfDifferences) {
  for (const char* name : {"seq2seq", "transformer", "classifier_fixed"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const NetworkTrace trace = traced(subject);
    const TracedAttention& last = *answer_attention(trace, {});
    const int64_t t = subject.target_length() - 1;
    const bool pooled = !last.site.reads_source;
    constexpr double step = 1e-6;
    const auto answer = [&](int64_t head, int64_t j, double more) {
      size_t first = 0;
      bool begun = false;
      TraceOptions options;
      options.weights = [&](const Site& site, size_t call, const Tensor& weights) {
        if (!(site == last.site)) return Tensor();
        if (!begun) first = call;
        begun = true;
        Tensor result = weights.clone();
        const int64_t row = pooled ? 0 : t;
        if (!last.in_steps() || pooled)
          result[0][head][row][j] += more;
        else if (static_cast<int64_t>(call - first) == row)
          result[0][head][0][j] += more;
        return result;
      };
      return trace_network(subject.network(), subject.batch, options)
          .log_probabilities[0][t]
          .item<double>();
    };
    const Tensor weights = traced_weights(last).detach();
    const Tensor scores = method_scores(find_method("attention_x_gradient"), subject);
    for (int64_t j = 0; j < subject.source_length(); ++j) {
      double wanted = 0;
      for (int64_t head = 0; head < last.heads(); ++head)
        wanted += weights[head][pooled ? 0 : t][j].item<double>() *
                  (answer(head, j, step) - answer(head, j, -step)) / (2 * step);
      EXPECT_NEAR(scores[t][j].item<double>(), wanted, 1e-7);
    }
  }
}

TEST(Methods, OcclusionIsTheAnswerWithoutTheToken) {
  SmallModel small = small_model("transformer");
  const Tensor scores = method_scores(find_method("occlusion"), small.subject());
  const Tensor whole = traced(small.subject()).log_probabilities[0].detach();
  small.source = "a b d e";
  const Tensor without = traced(small.subject()).log_probabilities[0].detach();
  EXPECT_LE((scores.select(1, 2) - (whole - without)).abs().max().item<double>(), 1e-9);
}

TEST(Methods, OcclusionLeavesNeighboursOutTogether) {
  SmallModel small = small_model("transformer");
  const Tensor scores = method_scores(find_method("occlusion"), small.subject(), {.max_passes = 3});
  const Tensor whole = traced(small.subject()).log_probabilities[0].detach();
  small.source = "a b e";  // without c and d
  const Tensor without = traced(small.subject()).log_probabilities[0].detach();
  for (const int64_t token : {2, 3})
    EXPECT_LE((scores.select(1, token) - (whole - without) / 2).abs().max().item<double>(), 1e-9);
}

TEST(Methods, LayersAndHeadsAreChosen) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const MethodRow& row = find_method("attention");
  const NetworkTrace trace = traced(subject);
  const Tensor first = traced_weights(trace.attentions[3]).detach();
  EXPECT_TRUE(method_scores(row, subject, {.layer = 1, .head = 2}).equal(first[1]));
  EXPECT_TRUE(method_scores(row, subject, {.layer = 1}).allclose(first.mean(0)));
  EXPECT_THAT(test::error_of([&] { method_scores(row, subject, {.layer = 3}); }),
              HasSubstr("layer 3 is asked for"));
  EXPECT_THAT(test::error_of([&] { method_scores(row, subject, {.head = 0}); }),
              HasSubstr("head 0 is asked for"));
  EXPECT_THAT(test::error_of([&] { method_scores(find_method("gradient"), subject, {.head = 1}); }),
              HasSubstr("leave layer and head out"));
}

TEST(Methods, OneIsShownWhereNoneIsNamed) {
  const auto shown = [](const char* model) -> std::string {
    const SmallModel small = small_model(model);
    return default_method(small.subject()).name;
  };
  EXPECT_EQ(shown("transformer"), "attention");
  EXPECT_EQ(shown("lm"), "attention");
  // Labels and numbers are computed from the mixed vectors of layers.
  EXPECT_EQ(shown("classifier_mean"), "rollout");
  EXPECT_EQ(shown("classifier_number"), "rollout");
  EXPECT_EQ(shown("seq2seq_without_attention"), "occlusion");
}

TEST(Methods, AMistypedNameIsCorrected) {
  EXPECT_THAT(test::error_of([] { find_method("gradients"); }),
              HasSubstr("did you mean gradient?"));
}

TEST(Trace, SeesEveryLayerAndHead) {
  const auto names = [](const char* model) {
    const SmallModel small = small_model(model);
    std::vector<std::string> names;
    for (const TracedAttention& one : traced(small.subject()).attentions) {
      const Tensor weights = traced_weights(one);
      names.push_back(fmt::format("{}: {} heads {}x{}", one.name(), weights.size(0),
                                  weights.size(1), weights.size(2)));
      EXPECT_TRUE(at::isfinite(weights).all().item<bool>());
    }
    return names;
  };
  using testing::ElementsAre;
  EXPECT_THAT(names("transformer"),
              ElementsAre("encoder 1: 2 heads 5x5", "encoder 2: 2 heads 5x5",
                          "decoder 1: 2 heads 4x4", "decoder 1 over the source: 2 heads 4x5",
                          "decoder 2: 2 heads 4x4", "decoder 2 over the source: 2 heads 4x5"));
  EXPECT_THAT(names("seq2seq_with_layers"),
              ElementsAre("encoder 1: 2 heads 5x5", "decoder over the source: 1 heads 4x5",
                          "decoder: 1 heads 4x4"));
  EXPECT_THAT(names("lm"), ElementsAre("layer 1: 2 heads 9x9", "layer 2: 2 heads 9x9"));
  EXPECT_THAT(names("encoder"), ElementsAre("encoder 1: 2 heads 6x6", "encoder 2: 2 heads 6x6"));
  EXPECT_THAT(names("classifier_fixed"), ElementsAre("pooling: 2 heads 1x5"));
}

// A copying model copies by the replaced weights. With zero weights it copies nothing, as with a
// closed gate.
TEST(Trace, CopiesByTheWeightsThatItIsGiven) {
  const SmallModel small(
      "copy", "seq2seq",
      {"model.hidden=8", "model.embedding=6", "model.attention_depth=5", "model.copy=true"});
  const Subject subject = small.subject();
  TraceOptions nothing;
  nothing.weights = [](const Site&, size_t, const Tensor& weights) {
    return at::zeros_like(weights);
  };
  const auto answer = [&] {
    return trace_network(subject.network(), subject.batch, nothing).distributions.detach();
  };
  const Tensor copied = answer();
  const at::NoGradGuard not_recorded;
  subject.network().named_parameters()["gate.bias"].fill_(1e3);
  EXPECT_TRUE(copied.allclose(answer(), 1e-9, 1e-9));
}

TEST(Trace, LeavesTheAnswerAsItIs) {
  for (const SmallModel& small : small_models()) {
    SCOPED_TRACE(small.name);
    const Subject subject = small.subject();
    const at::NoGradGuard not_recorded;
    const Tensor plain = subject.network().log_probabilities(subject.batch, {});
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    // The contexts of a watched recurrence are sums in another order.
    EXPECT_TRUE(has_signed_weights(trace) ? plain.allclose(trace.distributions, 1e-12, 1e-12)
                                          : plain.equal(trace.distributions));
    TraceOptions same;
    same.weights = [](const Site&, size_t, const Tensor& weights) { return weights; };
    const Tensor again = trace_network(subject.network(), subject.batch, same).distributions;
    EXPECT_TRUE(plain.allclose(again, 1e-9, 1e-9));
  }
}

}  // namespace methods_test
}  // namespace attend
