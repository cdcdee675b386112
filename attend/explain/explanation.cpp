#include "attend/explain/explanation.h"

#include <ATen/core/grad_mode.h>

#include <functional>
#include <sstream>
#include <string>

#include "attend/base/error.h"
#include "attend/explain/answer_page.h"
#include "attend/explain/knock_out.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/shown.h"
#include "attend/explain/stopping-inl.h"
#include "attend/inference/model.h"
#include "attend/pictures/layer_graph.h"

namespace attend {
namespace {

std::string layers_or_maps_svg(const Shown& shown) {
  return shown.graph ? layer_graph_svg(*shown.graph) : shown_svg(shown);
}

std::string maps_json(const Shown& shown) {
  if (shown.graph) fail("the view graph is a picture; take the format svg");
  return shown_json(shown);
}

Shown shown_of(const Model& model, const Subject& subject, const ExplanationRequest& request) {
  Shown shown = show(subject, request.show);
  if (request.show.view == ExplanationView::alignment)
    shown.picture = source_picture(model, request.text);
  return shown;
}

ExplanationPage page_of(const Model& model, const Subject& subject,
                        const ExplanationRequest& request) {
  const ShowOptions& options = request.show;
  const MethodRow* only = options.method.empty() ? nullptr : &find_method(options.method);
  const std::optional<SourcePicture> picture = source_picture(model, request.text);
  const at::NoGradGuard not_recorded;
  if (options.evidence || request.form == ExplanationForm::html) {
    ExplanationPage page = tested_page(subject, only, options.choice, picture,
                                       [](int64_t, int64_t) { check_stopped(); });
    // A stopped method only adds a note.
    check_stopped();
    return page;
  }
  return answer_page(subject, first_method(subject, options),
                     layer_maps(subject, trace_network(subject.network(), subject.batch)), picture);
}

}  // namespace

std::string explain_answer(const Model& model, const ExplanationRequest& request,
                           const std::function<bool()>& is_stopped) {
  const StopGuard stopping(is_stopped);
  const Subject subject = compared_with(
      answered_subject(model, request.text, request.search, request.target), request.against);
  if (!request.without.empty()) {
    check_takes_no_map(request.show);
    if (request.form != ExplanationForm::json)
      fail("an answer without heads is reported only as json; take that format");
    return knock_out_json(knock_out(subject, request.text, request.search, request.without,
                                    request.show.ablation)) +
           '\n';
  }
  switch (request.form) {
    case ExplanationForm::json:
      return maps_json(shown_of(model, subject, request));
    case ExplanationForm::svg:
      return layers_or_maps_svg(shown_of(model, subject, request));
    case ExplanationForm::page:
      return page_json(page_of(model, subject, request));
    case ExplanationForm::html:
      break;
  }
  std::ostringstream out;
  write_page(out, page_of(model, subject, request));
  return out.str();
}

}  // namespace attend
