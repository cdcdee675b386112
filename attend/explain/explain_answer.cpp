#include "attend/explain/explain_answer.h"

#include <utility>

#include "attend/base/error.h"
#include "attend/explain/answer_page.h"
#include "attend/explain/explained_answer.h"
#include "attend/explain/explanation.h"
#include "attend/explain/shown_similarity.h"
#include "attend/explain/similarity.h"
#include "attend/explain/stopping-inl.h"
#include "attend/inference/model.h"
#include "attend/inference/predictor.h"
#include "attend/models/text_comparison.h"
#include "attend/pictures/layer_graph.h"
#include "attend/text/units.h"

namespace attend {
namespace {

Shown shown_of(const Model& model, const Explanation& explanation,
               const ExplanationRequest& request) {
  Shown shown = show(explanation, request.show);
  shown.text = request.text;
  if (request.show.view == ExplanationView::alignment)
    shown.picture = source_picture(model, request.text);
  return shown;
}

ExplanationPage page_of(const Model& model, const Explanation& explanation,
                        const ExplanationRequest& request, const Report& report) {
  const ShowOptions& options = request.show;
  if (!options.edge.empty())
    fail("at: a page shows no single score; take another format, such as json");
  const MethodRow* only = options.method.empty() ? nullptr : &find_method(options.method);
  const std::optional<SourcePicture> picture = source_picture(model, request.text);
  if (!options.evidence && !request.file->always_tested) {
    explanation.trace();  // the method and the page read all parts
    return answer_page(explanation, first_method(explanation, options), picture);
  }
  const TestedMethods tested =
      test_methods(explanation, only, options.choice, [&](int64_t done, int64_t total) {
        check_stopped();
        if (report) report(done, total);
      });
  ExplanationPage page = answer_page(explanation, tested, picture);
  // A stopped method only adds a note.
  check_stopped();
  return page;
}

KnockOut knock_out_of(const Explanation& explanation, const ExplanationRequest& request) {
  check_takes_no_map(request.show);
  if (request.file != nullptr && !request.file->knock_out)
    fail("an answer without heads is reported only as json; take that format");
  return knock_out(explanation, request.text, request.search, request.without,
                   request.show.ablation);
}

void check_pair(const ExplanationRequest& request) {
  const ShowOptions& show = request.show;
  const std::pair<bool, const char*> others[] = {{!request.target.empty(), "target"},
                                                 {!request.against.empty(), "against"},
                                                 {!request.search.source_language.empty(), "from"},
                                                 {!request.search.target_language.empty(), "to"},
                                                 {!request.without.empty(), "without"},
                                                 {show.view != ShowOptions{}.view, "view"},
                                                 {!show.method.empty(), "method"},
                                                 {show.choice.layer.has_value(), "layer"},
                                                 {show.choice.head.has_value(), "head"},
                                                 {show.words, "words"},
                                                 {!show.edge.empty(), "at"}};
  for (const auto& [is_set, name] : others)
    if (is_set) fail("pair: compares two texts, and explains no answer; leave {} out", name);
}

// The text after the usual prompt. Error if the prompt's tokens are not part of text vectors.
Subject prompted_subject(const Model& model, const std::string& text, const char* name) {
  const PairModel& parts = Predictor::of(model).model();
  if (split_words(text).empty()) return text_subject(parts, text, name);
  const auto* comparison = dynamic_cast<const TextComparison*>(parts.network.get());
  const std::string prompt = model.prompt();
  if (!prompt.empty() && comparison != nullptr && !comparison->prompts().are_pooled)
    fail(
        "pair: the model leaves the tokens of its prompt out of text vectors "
        "(model.pool_prompt), which parts of a similarity do not support");
  return text_subject(parts, prompt + text, name);
}

std::shared_ptr<const ExplainedAnswer> explain_similarity(const Model& model,
                                                          const ExplanationRequest& request,
                                                          const ExplanationWatch& watch) {
  check_pair(request);
  SimilarityParts similarity = similarity_parts(prompted_subject(model, request.text, "the text"),
                                                prompted_subject(model, *request.pair, "pair"));
  if (watch.answered)
    for (const Subject* each : {&similarity.first, &similarity.second}) watch.answered(*each);
  const bool is_page = request.file != nullptr && request.file->page;
  const bool is_tested = request.show.evidence || (is_page && request.file->always_tested);
  const std::vector<EvidenceFigure> card =
      is_tested ? evidence_card(similarity_figures(similarity)) : std::vector<EvidenceFigure>{};
  ExplainedAnswer explained{similarity.first};
  if (is_page) explained.page = similarity_page(similarity, card);
  if (!is_page || request.with_maps) explained.shown = shown_similarity(similarity, card);
  return std::make_shared<const ExplainedAnswer>(std::move(explained));
}

}  // namespace

std::shared_ptr<const ExplainedAnswer> explain_answer(const Model& model,
                                                      const ExplanationRequest& request,
                                                      const ExplanationWatch& watch) {
  const StopGuard stopping(watch.is_stopped);
  if (request.pair) return explain_similarity(model, request, watch);
  const Explanation explanation = compared_with(
      answered_subject(model, request.text, request.search, request.target), request.against);
  if (watch.answered) watch.answered(explanation.subject());
  ExplainedAnswer explained{explanation.subject()};
  const bool is_page = request.file != nullptr && request.file->page;
  if (!request.without.empty()) {
    explained.knock_out = knock_out_of(explanation, request);
  } else {
    // The page first, which reads most parts of the trace.
    if (is_page) explained.page = page_of(model, explanation, request, watch.report);
    if (!is_page || request.with_maps) explained.shown = shown_of(model, explanation, request);
  }
  return std::make_shared<const ExplainedAnswer>(std::move(explained));
}

std::string explained_file(const ExplainedAnswer& explained, const ExplainFile& file) {
  if (explained.knock_out) return file.knock_out(*explained.knock_out);
  if (explained.page) return file.page(*explained.page);
  if (!explained.shown.graph) return file.maps(explained.shown);
  if (!file.graph) fail("the view graph is a picture; take the format svg");
  return file.graph(*explained.shown.graph);
}

}  // namespace attend
