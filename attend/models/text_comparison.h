#pragma once

#include <ATen/ATen.h>

#include "attend/base/enum_names.h"
#include "attend/data/text_prompts.h"
#include "attend/nn/pass.h"

namespace attend {

// Similarity measure of two texts by their vectors. Names as in sentence-transformers.
enum class TextSimilarity {
  cosine,
  dot,
  euclidean,  // minus the distance
  manhattan,  // minus the sum of the differences of all numbers
};
inline EnumNames names_of(TextSimilarity) { return {"cosine", "dot", "euclidean", "manhattan"}; }

// Interface of networks that give vectors of texts for comparison.
class TextComparison {
 public:
  virtual ~TextComparison() = default;

  virtual TextSimilarity similarity() const = 0;

  // Returns vectors [.., D] of texts with token vectors [.., S, depth], S at least 1. Reports
  // activations and factors to the pass.
  virtual at::Tensor text_vectors(const at::Tensor& vectors, const Pass& pass) const = 0;

  // Returns the vector [D] of a text with token vectors [S, depth] without the first `skipped` of
  // them, 0 <= skipped < S, which other tokens have read. Weights by position count them.
  virtual at::Tensor text_vector_after(const at::Tensor& vectors, int64_t skipped) const = 0;

  virtual const TextPrompts& prompts() const = 0;
};

}  // namespace attend
