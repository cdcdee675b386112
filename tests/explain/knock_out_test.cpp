#include "attend/explain/knock_out.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/explain/ablated_network-inl.h"
#include "attend/inference/predictor.h"
#include "tests/explain/subjects.h"
#include "tests/support/files.h"

namespace attend {
namespace knock_out_test {

using at::Tensor;
using test::small_model;
using test::small_models;
using test::SmallModel;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor distributions(PairNetwork& network, const Subject& subject,
                     const TraceOptions& options = {}) {
  return trace_network(network, subject.batch, options).distributions.detach();
}

std::vector<SmallModel> all_models() {
  std::vector<SmallModel> models = small_models();
  for (SmallModel& model : test::models_with_rules()) models.push_back(std::move(model));
  models.emplace_back("copy", "seq2seq",
                      std::vector<std::string>{"model.hidden=8", "model.embedding=6",
                                               "model.attention_depth=5", "model.copy=true"});
  models.emplace_back(
      "groups", "lm",
      std::vector<std::string>{"model.depth=8", "model.heads=4", "model.key_heads=2",
                               "model.layers=2", "model.feed_forward=10"});
  return models;
}

// Without a head its output is zero, as with weights of zero.
TEST(KnockOut, OfEveryHeadOfEveryTypeIsThatOfWeightsOfZero) {
  int64_t heads = 0;
  for (const SmallModel& small : all_models()) {
    const Subject subject = small.subject();
    const Tensor plain = distributions(subject.network(), subject);
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    if (trace.attentions.empty()) {
      EXPECT_THAT(test::error_of([&] { heads_of(trace); }),
                  HasSubstr("nothing in the model attends"));
      continue;
    }
    for (const AttentionHead& one : heads_of(trace)) {
      ++heads;
      SCOPED_TRACE(fmt::format("{} {}.head.{}", small.name, attention_key(one.site), one.head + 1));
      const auto network = ablated_network(small.model.network, {{one}});
      const Tensor without = distributions(*network, subject);
      EXPECT_TRUE(at::isfinite(without.exp()).all().item<bool>());
      EXPECT_FALSE(without.allclose(plain, 1e-9, 1e-9)) << "it takes part";
      const auto found = std::find_if(trace.attentions.begin(), trace.attentions.end(),
                                      [&](const auto& each) { return each.site == one.site; });
      if (!found->has_weights()) continue;
      int64_t first = 0;
      size_t calls = 0;
      TraceOptions zeros;
      zeros.weights = [&](const Site& site, size_t, const Tensor& weights) {
        if (!(site == one.site)) return Tensor();
        first = found->in_steps() || calls++ == 0 ? 0 : first + weights.size(1);
        Tensor changed = weights.clone();
        if (one.head >= first && one.head < first + weights.size(1))
          changed.select(1, one.head - first).zero_();
        return changed;
      };
      EXPECT_TRUE(without.allclose(distributions(subject.network(), subject, zeros), 1e-9, 1e-9));
    }
  }
  EXPECT_GT(heads, 50);
}

// Decoding in steps and computing all at once use the same ablated network.
TEST(KnockOut, AnswersStepByStepAsItComputesAtOnce) {
  const at::NoGradGuard not_recorded;
  for (const SmallModel& small : all_models()) {
    const Subject subject = small.subject();
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    // Fill-in models read a whole text at once, and each place without its token. A step of a set
    // has all labels, and a target one. A step of a reader has both ends of a span.
    const AnswerKind& kind = small.model.answer_kind();
    if (trace.attentions.empty() || kind.fills() || kind.is_label_set() || kind.is_span()) continue;
    SCOPED_TRACE(small.name);
    const auto network = ablated_network(small.model.network, {{heads_of(trace).back()}});
    const auto state = network->start(subject.batch.source, subject.batch.source_lengths, {});
    const Tensor before = shift_right(subject.batch.target);
    std::vector<Tensor> steps;
    for (int64_t t = 0; t < before.size(1); ++t)
      steps.push_back(state->step(before.select(1, t), false, {}).log_probabilities);
    EXPECT_TRUE(at::stack(steps, 1)
                    .to(at::kDouble)
                    .allclose(distributions(*network, subject).to(at::kDouble), 1e-6, 1e-6));
  }
}

// The last head of a traced answer.
AttentionHead last_head(const NetworkTrace& trace) { return heads_of(trace).back(); }

// The weights of an edge become zero; other weights stay.
TEST(KnockOut, OfEdgesIsThatOfTheirWeightsOfZero) {
  for (const SmallModel& small : all_models()) {
    const Subject subject = small.subject();
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    if (trace.attentions.empty()) continue;
    for (const TracedAttention& attention : trace.attentions) {
      if (!attention.has_weights()) continue;
      SCOPED_TRACE(small.name + " " + attention_key(attention.site));
      const int64_t row = attention.rows() - 1;  // sees the first key, also in a causal layer
      const AttentionHead edge{attention.site, attention.heads() - 1, NumberRange{row + 1, row + 1},
                               NumberRange{1, 1}};
      const auto network = ablated_network(small.model.network, {{edge}});
      int64_t first = 0, rows = 0;
      size_t calls = 0;
      TraceOptions zero;
      zero.weights = [&](const Site& site, size_t, const Tensor& weights) {
        if (!(site == attention.site)) return Tensor();
        first = attention.in_steps() || calls++ == 0 ? 0 : first + weights.size(1);
        if (!attention.in_steps()) rows = 0;
        Tensor changed = weights.clone();
        if (rows <= row && row < rows + weights.size(2) && edge.head >= first &&
            edge.head < first + weights.size(1))
          changed.select(1, edge.head - first).select(1, row - rows).select(1, 0).zero_();
        rows += weights.size(2);
        return changed;
      };
      EXPECT_TRUE(distributions(*network, subject)
                      .allclose(distributions(subject.network(), subject, zero), 1e-9, 1e-9));
    }
  }
}

TEST(KnockOut, OfAllEdgesIsThatOfTheHead) {
  for (const char* name : {"transformer", "lm", "seq2seq", "classifier_fixed"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const AttentionHead head = last_head(trace_network(subject.network(), subject.batch));
    AttentionHead edges = head;
    edges.keys = NumberRange{};
    EXPECT_TRUE(
        distributions(*ablated_network(small.model.network, {{edges}}), subject)
            .allclose(distributions(*ablated_network(small.model.network, {{head}}), subject), 1e-9,
                      1e-9));
  }
}

// An edge of one query is removed in the query's step.
TEST(KnockOut, EdgesAreSwitchedOffStepByStep) {
  const at::NoGradGuard not_recorded;
  for (const char* name : {"transformer", "lm", "seq2seq"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const NetworkTrace trace = trace_network(subject.network(), subject.batch);
    AttentionHead edges = last_head(trace);
    const int64_t row = trace.attentions.back().rows() - 1;  // one-based: the last row but one
    edges.queries = NumberRange{row, row};
    const auto network = ablated_network(small.model.network, {{edges}});
    const Tensor wanted = distributions(*network, subject).to(at::kDouble);
    ASSERT_FALSE(
        wanted.allclose(distributions(subject.network(), subject).to(at::kDouble), 1e-9, 1e-9));
    const auto state = network->start(subject.batch.source, subject.batch.source_lengths, {});
    const Tensor before = shift_right(subject.batch.target);
    std::vector<Tensor> steps;
    for (int64_t t = 0; t < before.size(1); ++t)
      steps.push_back(state->step(before.select(1, t), false, {}).log_probabilities);
    EXPECT_TRUE(at::stack(steps, 1).to(at::kDouble).allclose(wanted, 1e-6, 1e-6));
  }
}

// Ablation by the mean replaces the head's output at every place.
TEST(KnockOut, TheMeanOfAHeadTakesItsPlace) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  for (const char* name :
       {"encoder.2.head.1", "decoder.1.self.head.2", "decoder.2.source.head.1"}) {
    SCOPED_TRACE(name);
    const AttentionHead head = named_heads({name}, heads_of(trace))[0];
    const auto attention = std::find_if(trace.attentions.begin(), trace.attentions.end(),
                                        [&](const auto& each) { return each.site == head.site; });
    const Tensor mean = attention->calls[0].result.context[0][head.head].mean(0);
    const Tensor wanted =
        distributions(*ablated_network(small.model.network, {{head, mean}}), subject);
    const KnockOut told = knock_out(subject, small.source, {}, {name}, Ablation::mean);
    const Tensor target = subject.batch.target.unsqueeze(2);
    EXPECT_NEAR(told.after, wanted.gather(2, target).sum().item<double>(), 1e-9);
    EXPECT_NE(told.after, knock_out(subject, small.source, {}, {name}).after);
  }
  EXPECT_THAT(test::error_of([&] {
                knock_out(subject, small.source, {}, {"encoder.1.key.1"}, Ablation::mean);
              }),
              HasSubstr("an edge has no mean"));
  // If all places have equal outputs, the mean changes nothing.
  const SmallModel alike = small_model("classifier_class");
  for (const auto& each : alike.model.network->named_parameters())
    if (each.key().find("_self.query") != std::string::npos) each.value().detach().zero_();
  const Subject level = alike.subject();
  const KnockOut same = knock_out(level, alike.source, {}, {"encoder"}, Ablation::mean);
  EXPECT_NEAR(same.after, same.before, 1e-9);
}

TEST(KnockOut, HeadsAreNamed) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const auto all = heads_of(trace_network(subject.network(), subject.batch));
  const auto named = [&](const std::vector<std::string>& names) {
    std::vector<std::string> found;
    for (const AttentionHead& one : named_heads(names, all))
      found.push_back(fmt::format("{} {}", attention_key(one.site), one.head + 1));
    return found;
  };
  EXPECT_THAT(named({"decoder.2.head.1"}), ElementsAre("decoder.2.self 1", "decoder.2.source 1"));
  EXPECT_THAT(named({"decoder.source.head.2"}),
              ElementsAre("decoder.1.source 2", "decoder.2.source 2"));
  EXPECT_THAT(named({"encoder.1-2.head.2-9"}), ElementsAre("encoder.1 2", "encoder.2 2"));
  EXPECT_THAT(named({"encoder.2", "decoder.1.self.head.1"}),
              ElementsAre("encoder.2 1", "encoder.2 2", "decoder.1.self 1"));
  const auto edges = named_heads({"encoder.1.head.2.query.3.key.1-2"}, all);
  ASSERT_EQ(edges.size(), 1);
  EXPECT_TRUE(edges[0].queries->holds(3) && !edges[0].queries->holds(2) &&
              edges[0].keys->holds(2) && !edges[0].keys->holds(3));
  EXPECT_EQ(named_heads({"encoder.key.4"}, all).size(), 4);
  for (const char* wrong :
       {"encoder.3", "encoder.1.head.3", "encoder.1.head", "encoder.head.0", "encoder.2-1", "coder",
        "encoder.1.", "", "encoder.1.source", "encoder.1.head.1.2", "encoder.1.query",
        "encoder.key.0", "encoder.key.1.query.1"})
    EXPECT_THAT(test::error_of([&] { named({wrong}); }),
                HasSubstr("it has encoder.1 with 2 heads, encoder.2 with 2 heads, decoder.1.self"))
        << wrong;
  const auto key = [](const char* name) {
    const SmallModel model = small_model(name);
    const Subject one = model.subject();
    return attention_key(heads_of(trace_network(one.network(), one.batch))[0].site);
  };
  EXPECT_EQ(key("lm"), "layer.1");
  EXPECT_EQ(key("classifier_fixed"), "pooling");
  EXPECT_EQ(key("seq2seq"), "decoder.source");
}

TEST(KnockOut, PlacesThatDoNotExistAreRefused) {
  const SmallModel small = small_model("transformer");
  const Subject subject = small.subject();
  const auto error = [&](const char* name) {
    return test::error_of([&] { knock_out(subject, small.source, {}, {name}); });
  };
  EXPECT_EQ(error("encoder.1.head.2.key.6"),
            "without 'encoder.1.head.2.key.6': no such positions; encoder.1 has 5 queries "
            "and 5 keys");
  EXPECT_THAT(error("encoder.query.6-9"), HasSubstr("no such positions"));
  EXPECT_THAT(error("decoder.1.source.query.5"),
              HasSubstr("decoder.1.source has 4 queries and 5 keys"));
  EXPECT_EQ(error("encoder.1.key.5"), "");
  EXPECT_EQ(error("decoder.1.source.query.4"), "");
  EXPECT_EQ(error("encoder.1.key.5-9"), "") << "as a range of heads";
  // The decoder has 4 own keys and 5 of its source.
  EXPECT_EQ(error("decoder.1.key.5"), "");
}

TEST(KnockOut, TakesNothingOfAMap) {
  EXPECT_EQ(test::error_of([] { check_takes_no_map({.ablation = Ablation::mean}); }), "");
  for (const auto& [options, name] :
       std::vector<std::pair<ShowOptions, std::string>>{{{.view = ExplanationView::heads}, "view"},
                                                        {{.method = "gradient"}, "method"},
                                                        {{.choice = {.layer = 1}}, "layer"},
                                                        {{.choice = {.head = 1}}, "head"},
                                                        {{.words = true}, "words"},
                                                        {{.evidence = true}, "evidence"}})
    EXPECT_THAT(test::error_of([&] { check_takes_no_map(options); }),
                HasSubstr("leave " + name + " out"));
}

TEST(KnockOut, TellsWhatBecomesOfTheAnswer) {
  const SmallModel small = small_model("classifier_class");
  const Subject subject = small.subject();
  const KnockOut told = knock_out(subject, small.source, {}, {"encoder.1", "encoder.2.head.1"});
  EXPECT_EQ(told.without, "encoder.1, encoder.2.head.1");
  EXPECT_EQ(told.before,
            trace_network(subject.network(), subject.batch).log_probabilities.item<double>());
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  const auto network = ablated_network(small.model.network, [&] {
    std::vector<SwitchedOffHead> off;
    for (const AttentionHead& one : named_heads({"encoder.1", "encoder.2.head.1"}, heads_of(trace)))
      off.push_back({one});
    return off;
  }());
  const Tensor without = distributions(*network, subject)[0][0];
  EXPECT_EQ(told.after, without[subject.batch.target[0][0]].item<double>());
  EXPECT_EQ(told.new_answer, small.model.target_vocabulary.token(without.argmax().item<int64_t>()));
  EXPECT_EQ(told.places, 1);
  EXPECT_THAT(knock_out_json(told), HasSubstr(R"({"without":"encoder.1, encoder.2.head.1")"));
  // If two answers are compared, the result is their difference.
  const KnockOut compared =
      knock_out(compared_with(subject, "bad"), small.source, {}, {"encoder.1.head.1"});
  const Tensor all = distributions(subject.network(), subject)[0][0];
  EXPECT_NEAR(compared.before,
              told.before - all[small.model.target_vocabulary.id("bad")].item<double>(), 1e-12);
}

TEST(KnockOut, OfANumberIsInItsUnit) {
  const SmallModel small = small_model("classifier_number");
  const KnockOut told = knock_out(small.subject(), small.source, {}, {"encoder.1"});
  EXPECT_NEAR(told.after, std::stod(told.new_answer), 1e-6 * std::abs(told.after));
  EXPECT_NE(told.after, told.before);
}

TEST(KnockOut, EffectsAreThoseOfEachHead) {
  for (const char* name : {"transformer", "seq2seq", "classifier_number"}) {
    SCOPED_TRACE(name);
    const SmallModel small = small_model(name);
    const Subject subject = small.subject();
    const std::vector<HeadEffect> effects = head_effects(subject);
    for (const HeadEffect& one : effects) {
      const KnockOut told =
          knock_out(subject, small.source, {},
                    {fmt::format("{}.head.{}", attention_key(one.head.site), one.head.head + 1)});
      EXPECT_NEAR(one.effect, told.before - told.after, 1e-12);
    }
    EXPECT_EQ(effects.size(), heads_of(trace_network(subject.network(), subject.batch)).size());
  }
}

}  // namespace knock_out_test
}  // namespace attend
