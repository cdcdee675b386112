#include "attend/kernels/check.h"

#include "attend/base/error.h"

namespace attend::kernels {

template <class S>
void check(const Problem<S>& problem) {
  const Shape& s = problem.shape;
  for (const int64_t size :
       {s.batch, s.heads, s.key_heads, s.queries, s.keys, s.depth, s.value_depth}) {
    if (size < 0) fail("[attention] shape holds {}; sizes must not be negative", size);
  }
  if (s.heads > 0 && (s.key_heads == 0 || s.heads % s.key_heads != 0)) {
    fail("[attention] key_heads is {}; it must divide heads, {}", s.key_heads, s.heads);
  }
  if (problem.score.family == Family::additive && problem.score.vector == nullptr) {
    fail("[attention] the additive score has no vector; set score.vector");
  }
}

template void check(const Problem<float>&);
template void check(const Problem<double>&);
template void check(const Problem<BFloat16>&);
template void check(const Problem<Float16>&);

}  // namespace attend::kernels
