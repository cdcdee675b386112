#pragma once

#include <string>
#include <vector>

#include "attend/pictures/map_page.h"

namespace attend {

// "passed: at least 0.5" or "FAILED: must be at least 0.5", after the words of `subject`; empty
// without a bar.
std::string verdict(const std::string& bar, bool passed, const std::string& subject = "");

// A card as lines: each figure with its bar and verdict, or the reason why it was not computed.
// Empty without figures.
std::string evidence_text(const std::vector<EvidenceFigure>& card);

}  // namespace attend
