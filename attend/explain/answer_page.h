#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/explain/evidence.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/methods.h"
#include "attend/inference/evaluation.h"
#include "attend/pictures/map_page.h"

namespace attend {

// The scores that a method gives an answer, and the evidence for them.
struct TestedMethod {
  const MethodRow* row = nullptr;
  at::Tensor scores;                      // [target tokens, source tokens]
  std::vector<EvidenceFigure> card = {};  // empty: not tested
};

// What several methods say of one answer.
struct TestedMethods {
  std::vector<TestedMethod> methods;
  std::string note = {};  // why others of them said nothing
};

// Tests every method that applies to the answer, or only `only` where it is set; `trace` is that of
// the answer. A source is long where a pass for each of its tokens is more than choice.most_passes.
// Without `only`, a long source gets the methods that take few passes, untested, and the note says
// so. `choice` is for the methods that take a layer and a head. Throws Error where `only` cannot be
// computed.
TestedMethods test_methods(const Subject& subject, const NetworkTrace& trace, const MethodRow* only,
                           const MethodChoice& choice, const Report& report = {});

// A page of one answer: its methods, and the maps of all layers, over the picture of its source
// where it has one.
ExplanationPage answer_page(const Subject& subject, const TestedMethods& tested,
                            std::vector<LayerMap> maps,
                            const std::optional<SourcePicture>& picture = {});

// The page of an answer whose methods are tested, as test_methods() does it.
ExplanationPage tested_page(const Subject& subject, const MethodRow* only,
                            const MethodChoice& choice,
                            const std::optional<SourcePicture>& picture = {},
                            const Report& report = {});

}  // namespace attend
