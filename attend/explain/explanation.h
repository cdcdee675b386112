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
  json,  // what shown_json() says
  svg,   // a picture of the same
  html,  // a page of all methods that apply, or of the one that is named, tested, and of all layers
  page,  // what such a page holds, as page_json() has it; where `evidence` is not set the maps of
         // one method, not tested, in place of those of all
};
inline EnumNames names_of(ExplanationForm) { return {"json", "svg", "html", "page"}; }

// What is to be explained.
struct ExplanationRequest {
  std::string text;
  std::string target = {};    // in place of the model's answer
  std::string against = {};   // another that the answer is compared with; empty: none
  SearchOptions search = {};  // by which the model answers
  // Heads that are switched off, as named_heads() has them: the result is what becomes of the
  // answer, in place of a map. Takes the form json, and of `show` the ablation only.
  std::vector<std::string> without = {};
  ShowOptions show = {};  // pages heed the method, its choice and `evidence` alone
  ExplanationForm form = ExplanationForm::json;
};

// Explains an answer, over the picture of its source where it has one. Error as answered_subject(),
// compared_with(), knock_out(), show() and method_scores(). Any number of threads may explain with
// one model. `is_stopped` is asked between the steps of the search, and before each pass that an
// explanation takes; true ends the work with an Error.
std::string explain_answer(const Model& model, const ExplanationRequest& request,
                           const std::function<bool()>& is_stopped = {});

}  // namespace attend
