#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace attend {

// Counts of answered labels, by the right label.
struct LabelCounts {
  std::map<std::string, std::map<std::string, int64_t>> answers;  // right label: answer: examples
  std::map<std::string, int64_t> unanswered = {};  // right label: examples without an answer

  // Scores of one label, or their means over labels.
  struct Score {
    double precision = 0;  // right share of the answers with this label; 0 if there are none
    double recall = 0;     // share of its examples answered with it; 0 if there are none
    double f1 = 0;         // harmonic mean of both
  };

  // If several labels are right, counts for the answer if it is among them, else for the first.
  // Error if `right` is empty.
  void add(const std::string& answer, const std::vector<std::string>& right);

  double accuracy() const;  // equals the micro-averaged F1: one answer per example
  std::map<std::string, Score> scores() const;  // for every right or answered label
  Score macro() const;                          // mean over scores()
};

// Returns the label as lines of text show it: "(none)" if it is empty.
std::string shown_label(const std::string& label);

}  // namespace attend
