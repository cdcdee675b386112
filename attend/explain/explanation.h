#pragma once

#include <optional>
#include <vector>

#include "attend/explain/head_patterns.h"
#include "attend/explain/subject.h"
#include "attend/explain/trace.h"
#include "attend/pictures/map_page.h"

namespace attend {

// A subject, and the parts that its explanations share. Each part is computed on first use and
// kept. Not thread-safe.
class Explanation {
 public:
  Explanation(Subject subject);  // NOLINT(google-explicit-constructor): functions take either

  const Subject& subject() const { return subject_; }

  // Trace of the answer with at least these parts. Request the most that is needed first: a call
  // for more parts computes the trace again.
  const NetworkTrace& trace(TraceParts parts = TraceParts::blocks) const;

  const std::vector<HeadPatterns>& patterns() const;  // head_patterns()
  const std::optional<PageLens>& lens() const;        // page_lens()

 private:
  Subject subject_;
  mutable std::optional<NetworkTrace> trace_;
  mutable TraceParts traced_ = TraceParts::vectors;
  mutable std::optional<std::vector<HeadPatterns>> patterns_;
  mutable std::optional<std::optional<PageLens>> lens_;
};

}  // namespace attend
