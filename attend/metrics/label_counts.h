#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace attend {

// Answers that are labels, by the label that is right.
struct LabelCounts {
  std::map<std::string, std::map<std::string, int64_t>> answers;  // right label: answer: examples
  std::map<std::string, int64_t> unanswered = {};  // right label: examples without any answer

  // The scores of one label, or their means over several.
  struct Score {
    double precision = 0;  // share of the answers of that label that are right; 0 without any
    double recall = 0;     // share of its examples that got it; 0 without any
    double f1 = 0;         // harmonic mean of both
  };

  // Where several labels are right, the answer among them or else the first counts. Error on none.
  void add(const std::string& answer, const std::vector<std::string>& right);

  double accuracy() const;  // also the micro-averaged F1: one answer per example
  std::map<std::string, Score> scores() const;  // of every label that was right or answered
  Score macro() const;                          // the mean over scores()
};

}  // namespace attend
