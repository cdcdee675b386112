#include "attend/models/pair_network.h"

#include "attend/data/vocabulary.h"

namespace attend {

at::Tensor symbols_before(const at::Tensor& target) {
  const at::Tensor start = at::full({target.size(0), 1}, Vocabulary::start, target.options());
  return at::cat({start, target.slice(1, 0, -1)}, 1);
}

}  // namespace attend
