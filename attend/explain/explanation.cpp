#include "attend/explain/explanation.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "attend/explain/layer_answers.h"

namespace attend {

Explanation::Explanation(Subject subject) : subject_(std::move(subject)) {}

const NetworkTrace& Explanation::trace(TraceParts parts) const {
  if (!trace_ || traced_ < parts) {
    trace_.reset();
    trace_ = trace_network(subject_.network(), subject_.batch, {.keeps = parts});
    traced_ = parts;
  }
  return *trace_;
}

const std::vector<HeadPatterns>& Explanation::patterns() const {
  if (!patterns_) patterns_ = head_patterns(*this);
  return *patterns_;
}

const std::optional<PageLens>& Explanation::lens() const {
  if (!lens_) lens_ = page_lens(*this);
  return *lens_;
}

}  // namespace attend
