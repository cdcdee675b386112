#include "attend/models/pair_network.h"

#include "attend/base/error.h"
#include "attend/data/vocabulary.h"

namespace attend {

void PairNetwork::place(const Devices& devices) {
  if (!devices.on_one_device() || !devices.decoder.is_cpu())
    fail("this type of model computes on the CPU alone; seq2seq can be placed on other devices");
}

at::Tensor symbols_before(const at::Tensor& target) {
  const at::Tensor start = at::full({target.size(0), 1}, Vocabulary::start, target.options());
  return at::cat({start, target.slice(1, 0, -1)}, 1);
}

}  // namespace attend
