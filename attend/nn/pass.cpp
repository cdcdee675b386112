#include "attend/nn/pass.h"

#include <limits>

#include "attend/nn/shared_sequence.h"

namespace attend {

using at::Tensor;

Pass Pass::at_site(const Site& other) const {
  Pass pass = *this;
  pass.site = other;
  return pass;
}

Pass Pass::watched_by(Watch& other) const {
  other.outer_ = watch;
  Pass pass = *this;
  pass.watch = &other;
  return pass;
}

Pass Pass::unseen() const {
  Pass pass = *this;
  pass.watch = nullptr;
  return pass;
}

Pass Pass::over(const SharedSequence& other) const {
  Pass pass = *this;
  pass.sequence = other.is_whole() ? nullptr : &other;
  return pass;
}

Pass Pass::in(Recurrence& other) const {
  Pass pass = *this;
  pass.recurrence = &other;
  return pass;
}

Tensor Pass::watched(WatchedVectors which, const Tensor& vectors) const {
  return watch == nullptr ? vectors : watch->vectors(which, vectors, unwatched());
}

uint64_t Pass::draw_seed() const {
  if (!generator) return 0;
  const Tensor seed = at::empty({}, at::kLong);
  seed.random_(1, std::numeric_limits<int64_t>::max(), generator);
  return static_cast<uint64_t>(seed.item<int64_t>());
}

Pass Pass::unwatched() const {
  Pass pass = *this;
  pass.watch = watch->outer_;
  return pass;
}

Tensor Pass::apply_weights(const Tensor& weights, const Tensor& value, const AttentionSpec& spec,
                           const Tensor& output) const {
  const AttentionCall call = weights_call(weights, value, spec);
  return attention(call.query, call.key, call.value, call.spec, output).context;
}

AttentionCall weights_call(const Tensor& weights, const Tensor& value, AttentionSpec spec) {
  spec.score = Score("dot");
  spec.bias = {};
  spec.normaliser = Normaliser("none");
  spec.sink = Tensor();
  spec.soft_cap = 0;
  spec.past = {};
  const int64_t keys = value.size(-2);
  std::vector<int64_t> shape = value.sizes().vec();
  shape.back() = keys;
  return {weights, at::eye(keys, value.options()).expand(shape), value, std::move(spec), {}};
}

}  // namespace attend
