#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/decode/search_options.h"
#include "attend/explain/explain_files.h"
#include "attend/explain/show_options.h"
#include "attend/inference/evaluation.h"

namespace attend {

struct ExplainedAnswer;
struct Subject;

// Answer to explain, and the form of the result.
struct ExplanationRequest {
  std::string text = {};
  std::string target = {};   // replaces the model's answer
  std::string against = {};  // other answer to compare with; empty: none
  // Other text, for a model that compares texts: explains their similarity instead of an answer.
  // In `show`, only `evidence` may be set.
  std::optional<std::string> pair = {};
  SearchOptions search = {};  // for the model's answer; its languages also for given answers
  // Heads to switch off, as for named_heads(). The result then describes the changed answer instead
  // of a map. In `show`, only the ablation may be set.
  std::vector<std::string> without = {};
  ShowOptions show = {};              // pages use only the method, its choice and `evidence`
  const ExplainFile* file = nullptr;  // file to write; null: none
  bool with_maps = false;             // makes maps even if the file is a page
};

// Functions that are called during the work. Each may be empty.
struct ExplanationWatch {
  // Called between the steps of the search and before each pass of an explanation; true ends the
  // work with an Error.
  std::function<bool()> is_stopped = {};
  std::function<void(const Subject& subject)> answered = {};  // called before the explanation
  Report report = {};                                         // counts tested methods of a page
};

// Explains an answer, over the picture of its source if it has one. Errors as answered_subject(),
// compared_with(), knock_out(), similarity_parts(), show() and method_scores(). Thread-safe for one
// model. Not null.
std::shared_ptr<const ExplainedAnswer> explain_answer(const Model& model,
                                                      const ExplanationRequest& request,
                                                      const ExplanationWatch& watch = {});

// Returns the bytes of the requested file. Error if files of its kind cannot show the explanation.
std::string explained_file(const ExplainedAnswer& explained, const ExplainFile& file);

}  // namespace attend
