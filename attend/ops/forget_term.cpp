// Forgetting: a bias of sums of the logarithms of gates.
#include <algorithm>

#include "attend/base/error.h"
#include "attend/ops/bias_parts.h"
#include "attend/ops/conditions-inl.h"
#include "attend/ops/key_places-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

// exp of it is 0 in float64. A sum of a million of them still has 1e-5 as its last digit, so that
// gates of 0 do not hide the gates after them.
constexpr double least_logarithm = -1e5;

class ForgetTerm : public PlacedTerm<ForgetTerm> {
 public:
  ForgetTerm(Tensor gates, int64_t offset, Tensor offsets)
      : PlacedTerm({std::move(gates)}, {.offset = offset, .offsets = std::move(offsets)}) {}

  void add_to(BiasParts& parts) const override {
    const LoweredSpec& spec = parts.spec();
    const Tensor gates = parts.number_per_position(tensors_[0], name);
    const int64_t count = gates.size(2), end = places_.first_key + spec.keys;
    if (places_.holds_all_keys ? count != end : count < end)
      fail("[attention] {} have shape {}; the last axis must have a number for each of the {} keys",
           name, shape_of(tensors_[0]), end);
    // Element n is the sum of the gates of keys 0 ... n - 1.
    const Tensor sums = at::constant_pad_nd(
        at::log_sigmoid(gates.to(at::kDouble)).clamp_min(least_logarithm).cumsum(2), {1, 0});
    const Tensor after =
        (places_.queries(parts, "forget", gates) + 1).clamp(0, count);  // [B or 1, Tq]
    const std::vector<int64_t> shape = {spec.batch, spec.heads, spec.queries};
    const Tensor query_sums = after.size(0) == 1 ? sums.index_select(2, after[0])
                                                 : sums.gather(2, after.unsqueeze(1).expand(shape));
    parts.add_sums(query_sums, sums.narrow(2, places_.first_key + 1, spec.keys));
  }

 private:
  static constexpr const char* name = "the gates of forget";
};

}  // namespace

Bias forget(Tensor gates, int64_t offset, Tensor offsets) {
  return {{std::make_shared<ForgetTerm>(std::move(gates), offset, std::move(offsets))}};
}

}  // namespace attend
