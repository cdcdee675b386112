#pragma once

#include <optional>

#include "attend/explain/explain_answer.h"
#include "attend/explain/knock_out.h"
#include "attend/explain/shown.h"
#include "attend/explain/subject.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Result of explain_answer().
struct ExplainedAnswer {
  Subject subject;
  std::optional<KnockOut> knock_out = {};  // with ExplanationRequest::without, and nothing else
  Shown shown = {};                        // without maps if only a page was requested
  std::optional<ExplanationPage> page = {};
};

}  // namespace attend
