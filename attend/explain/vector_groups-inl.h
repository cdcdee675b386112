#pragma once

#include <vector>

#include "attend/explain/show_options.h"
#include "attend/explain/subject.h"
#include "attend/explain/trace.h"

namespace attend {

// Methods that compute the network once for each token would take many minutes for a long source.
// They take neighbours together then, as many as keep them below half a minute or so, and each
// token has an even share of what its group has.

// MethodChoice::most_passes, of this answer where there is no choice.
int64_t affordable_passes(const Subject& subject, const MethodChoice& choice);

// Whether that is less than one for each token of the source.
bool is_long(const Subject& subject, const MethodChoice& choice);

// The vectors of a layer in runs of neighbours.
class VectorGroups {
 public:
  // Groups of `size`, or of what is left, among the vectors of the source, and among those before
  // and behind it.
  VectorGroups(int64_t before, int64_t source, int64_t vectors, int64_t size);

  int64_t count() const { return count_; }
  int64_t size() const { return size_; }                        // of the largest group
  const at::Tensor& of_vectors() const { return of_vectors_; }  // int64 [vectors]
  std::vector<int64_t> members(int64_t group) const;
  std::vector<int64_t> others(int64_t group) const;

  // Amounts [.., vectors] along `axis`, summed over each group: [.., groups].
  at::Tensor together(const at::Tensor& amounts, int64_t axis) const;

  // Amounts [rows, groups] as even shares of their vectors, [rows, vectors]; with `scope`, bool
  // [rows, vectors], of those in scope alone, if there are some.
  at::Tensor shared_out(const at::Tensor& amounts, const at::Tensor& scope = {}) const;

 private:
  at::Tensor of_vectors_;
  int64_t size_, count_ = 0;
};

// Groups of the source's tokens: at most `most` of its text, or nearly, and its special tokens.
VectorGroups source_groups(const Subject& subject, int64_t most);

// The same of the vectors of the layers that read the source, `vectors` of them.
VectorGroups layer_groups(const Subject& subject, int64_t vectors, int64_t most);

}  // namespace attend
