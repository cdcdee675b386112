#include "attend/models/pair_network.h"

#include "attend/base/error.h"
#include "attend/data/vocabulary.h"

namespace attend {

at::Tensor PairNetwork::encodings(const at::Tensor&, const at::Tensor&) {
  fail("this type of model has no encoder; take another to embed sources with");
}

void PairNetwork::place(const Devices& devices) {
  if (!devices.on_one_device())
    fail("this type of model computes on one device; name it by --device, without --place");
  device_ = devices.decoder;
  to(device_);
}

at::Tensor shift_right(const at::Tensor& target) {
  const at::Tensor start = at::full({target.size(0), 1}, Vocabulary::bos, target.options());
  return at::cat({start, target.slice(1, 0, -1)}, 1);
}

}  // namespace attend
