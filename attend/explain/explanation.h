#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/decode/search_options.h"
#include "attend/explain/show_options.h"

namespace attend {

class Model;

enum class ExplanationForm {
  json,  // output of shown_json()
  svg,   // the same as a picture
  html,  // page of all methods that apply, or of the named one, tested, and of all layers
  page,  // page_json() of such a page; without `evidence`, has the untested map of one method only
};
inline EnumNames names_of(ExplanationForm) { return {"json", "svg", "html", "page"}; }

// Answer to explain, and the form of the result.
struct ExplanationRequest {
  std::string text;
  std::string target = {};    // replaces the model's answer
  std::string against = {};   // other answer to compare with; empty: none
  SearchOptions search = {};  // for the model's answer
  // Heads to switch off, as for named_heads(). The result then describes the changed answer instead
  // of a map. Requires the form json; in `show`, only the ablation may be set.
  std::vector<std::string> without = {};
  ShowOptions show = {};  // pages use only the method, its choice and `evidence`
  ExplanationForm form = ExplanationForm::json;
};

// Explains an answer, over the picture of its source if it has one. Errors as answered_subject(),
// compared_with(), knock_out(), show() and method_scores(). Thread-safe for one model. `is_stopped`
// is called between the steps of the search and before each pass of an explanation; true ends the
// work with an Error.
std::string explain_answer(const Model& model, const ExplanationRequest& request,
                           const std::function<bool()>& is_stopped = {});

}  // namespace attend
