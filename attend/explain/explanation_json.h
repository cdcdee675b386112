#pragma once

#include <string>
#include <vector>

#include "attend/explain/faithfulness.h"
#include "attend/explain/head_patterns.h"
#include "attend/explain/shown_sum.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Explanations as JSON on one line: keys in snake_case, as in answers
// (attend/inference/answer_json.h). Bytes that are not UTF-8 become U+FFFD.

// {"title": "...", "source": [...], "target": [...], "weights": [[...], ...]} of any size. If
// present, also "scores", "evidence", a list of {"name", "value", "bar", "passed"}, and "patterns",
// the share per row of head_pattern_table(). Weights are bit-exact when read back in their type;
// weights that are not finite are null. A figure that was not computed has a null value and the
// reason in "missing".
std::string alignment_json(const Alignment& alignment,
                           const std::vector<EvidenceFigure>& evidence = {},
                           const HeadPatterns& patterns = {});

// The same with the evidence, the "measure" and the figures of a sum. The scores add up to the
// first figure.
std::string sum_json(const Alignment& alignment, const ShownSum& sum);

// {examples, methods: {METHOD: {FIGURE: {examples, mean, low, high, compared_with, bar, passed,
// missing}}}, left_out: [{method, examples, why}]}.
std::string faithfulness_json(const Faithfulness& measured);

}  // namespace attend
