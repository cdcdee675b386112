#pragma once

#include <vector>

#include "attend/explain/show_options.h"
#include "attend/explain/subject.h"
#include "attend/explain/trace.h"

namespace attend {

// Per-token methods would take many minutes for a long source. They then score groups of
// neighbours, and each token gets an even share of its group's score. The number of groups keeps
// the time to about half a minute.

// Returns choice.max_passes, or the default for this answer if it is 0.
int64_t affordable_passes(const Subject& subject, const MethodChoice& choice);

// Whether affordable_passes() is below the number of source tokens.
bool is_long(const Subject& subject, const MethodChoice& choice);

// Vectors of a layer in groups of neighbours.
class VectorGroups {
 public:
  // Forms groups of `size` or fewer vectors. Vectors before the source, of the source and after it
  // are in separate groups.
  VectorGroups(int64_t before, int64_t source, int64_t vectors, int64_t size);

  int64_t count() const { return count_; }
  int64_t size() const { return size_; }                      // size of the largest group
  const at::Tensor& by_vector() const { return by_vector_; }  // int64 [vectors]
  std::vector<int64_t> members(int64_t group) const;
  std::vector<int64_t> others(int64_t group) const;

  // Sums amounts [.., vectors] along `axis` over each group: [.., groups].
  at::Tensor together(const at::Tensor& amounts, int64_t axis) const;

  // Spreads amounts [rows, groups] evenly over the vectors of each group: [rows, vectors]. With
  // `scope`, bool [rows, vectors], only over vectors in scope, if the group has some.
  at::Tensor shared_out(const at::Tensor& amounts, const at::Tensor& scope = {}) const;

 private:
  at::Tensor by_vector_;
  int64_t size_, count_ = 0;
};

// Groups the source's tokens into about `most` groups of its text, and groups of its special
// tokens.
VectorGroups source_groups(const Subject& subject, int64_t maximum);

// Groups the `vectors` vectors of the layers that read the source likewise.
VectorGroups layer_groups(const Subject& subject, int64_t vectors, int64_t maximum);

}  // namespace attend
