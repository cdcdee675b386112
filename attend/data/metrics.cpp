#include "attend/data/metrics.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace attend {

int64_t edit_distance(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  // One row of the table of Wagner & Fischer 1974: distances from the read part of a.
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

void ErrorCounts::add(const std::vector<std::string>& answer,
                      const std::vector<std::vector<std::string>>& references) {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  int64_t length = 0;
  for (const auto& reference : references) {
    const int64_t edit = edit_distance(answer, reference);
    if (edit >= fewest) continue;
    fewest = edit;
    length = static_cast<int64_t>(reference.size());
  }
  ++examples;
  wrong += fewest != 0;
  edits += fewest;
  reference_symbols += length;
}

ErrorCounts& ErrorCounts::operator+=(const ErrorCounts& other) {
  examples += other.examples;
  wrong += other.wrong;
  edits += other.edits;
  reference_symbols += other.reference_symbols;
  return *this;
}

double ErrorCounts::token_error_rate() const {
  return reference_symbols == 0
             ? 0
             : static_cast<double>(edits) / static_cast<double>(reference_symbols);
}

double ErrorCounts::sequence_error_rate() const {
  return examples == 0 ? 0 : static_cast<double>(wrong) / static_cast<double>(examples);
}

}  // namespace attend
