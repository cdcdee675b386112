#include "attend/models/pair_network.h"

#include "attend/base/error.h"
#include "attend/text/vocabulary.h"

namespace attend {

at::Tensor PairNetwork::encodings(const at::Tensor&, const at::Tensor&, const Pass&) {
  fail("this type of model has no encoder; take another to embed sources with");
}

at::Tensor PairNetwork::log_probabilities(const Batch& batch, const Pass& pass) {
  const std::unique_ptr<DecodingState> state = start(batch.source, batch.source_lengths, pass);
  const at::Tensor before = shift_right(batch.target);
  std::vector<at::Tensor> steps;
  for (int64_t t = 0; t < before.size(1); ++t)
    steps.push_back(
        state->step(before.select(1, t), /*with_weights=*/false, pass).log_probabilities);
  return at::stack(steps, 1);
}

TopVectors PairNetwork::top_vectors(int64_t /*source_length*/, int64_t /*target_length*/) const {
  return {};
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
