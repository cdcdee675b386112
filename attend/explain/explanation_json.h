#pragma once

#include <string>
#include <vector>

#include "attend/explain/faithfulness.h"
#include "attend/explain/head_patterns.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Explanations as JSON on one line: keys in snake_case, as those of answers
// (attend/inference/answer_json.h). Bytes that are no UTF-8 become U+FFFD.

// {"title": "...", "source": [...], "target": [...], "weights": [[...], ...]} of any size,
// with "scores", "evidence", a list of {"name", "value", "bar", "passed"}, and "patterns", the
// share of each row of head_pattern_table(), where there are some. Weights read back to the bit in
// the type they had; those that are not finite are null. So is the value of a figure that was not
// computed, beside "missing", the reason.
std::string alignment_json(const Alignment& alignment,
                           const std::vector<EvidenceFigure>& evidence = {},
                           const HeadPatterns& patterns = {});

// {examples, methods: {METHOD: {FIGURE: {examples, mean, low, high, compared_with, bar, passed,
// missing}}}, left_out: [{method, examples, why}]}.
std::string faithfulness_json(const Faithfulness& measured);

}  // namespace attend
