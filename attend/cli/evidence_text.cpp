#include "attend/cli/evidence_text.h"

#include <fmt/format.h>

namespace attend {

std::string verdict(const std::string& bar, bool passed, const std::string& subject) {
  if (bar.empty()) return "";
  return passed ? "passed: " + bar : fmt::format("FAILED: {}must be {}", subject, bar);
}

std::string evidence_text(const std::vector<EvidenceFigure>& card) {
  std::string text;
  for (const EvidenceFigure& figure : card) {
    if (!figure.missing.empty()) {
      text += fmt::format("{:<28} {:>8}  not computed: {}\n", figure.name, "-", figure.missing);
      continue;
    }
    text += fmt::format("{:<28} {:8.3f}  {}\n", figure.name, figure.value,
                        verdict(figure.bar, figure.passed));
  }
  return text;
}

}  // namespace attend
