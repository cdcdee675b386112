#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/explain/evidence.h"
#include "attend/explain/explanation.h"
#include "attend/explain/methods.h"
#include "attend/inference/evaluation.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Scores that a method gives an answer, and the evidence for them.
struct TestedMethod {
  const MethodRow* row = nullptr;
  at::Tensor scores;                      // [target tokens, source tokens]
  std::vector<EvidenceFigure> card = {};  // empty: not tested
};

// Results of several methods for one answer.
struct TestedMethods {
  std::vector<TestedMethod> methods;
  std::string note = {};  // why other methods are missing
};

// Tests every method that applies to the answer, or only `only` if it is set. A source is long if
// one pass per token exceeds choice.max_passes. Without `only`, a long source gets only the methods
// that take few passes, untested, and the note says so. `choice` is used by methods that take a
// layer and a head. Throws Error if `only` cannot be computed.
TestedMethods test_methods(const Explanation& explanation, const MethodRow* only,
                           const MethodChoice& choice, const Report& report = {});

// Returns the page of one answer: its methods and the maps of all layers, drawn over the picture of
// the source if there is one.
ExplanationPage answer_page(const Explanation& explanation, const TestedMethods& tested,
                            const std::optional<SourcePicture>& picture = {});

}  // namespace attend
