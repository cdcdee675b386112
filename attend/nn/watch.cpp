// Calls of a pass that go through its watch, if it has one.
#include "attend/nn/pass.h"
#include "attend/nn/shared_sequence.h"
#include "attend/parallel/distributed_attention.h"

namespace attend {

using at::Tensor;

AttentionResult Pass::attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                const AttentionSpec& spec, const Tensor& output) const {
  if (watch != nullptr) return watch->attention({query, key, value, spec, output}, unwatched());
  if (sequence == nullptr) return attend::attention(query, key, value, spec);
  return distributed_attention(sequence->world(), query, key, value, spec,
                               sequence->attended(site));
}

Tensor Pass::weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                     const AttentionSpec& spec) const {
  if (watch != nullptr) return watch->weights(query, key, lse, spec, unwatched());
  return attention_weights(query, key, lse, spec);
}

Tensor NormCall::factors(const Tensor& vectors) const {
  const Tensor variance = centred ? vectors.var(-1, /*unbiased=*/false, /*keepdim=*/true)
                                  : vectors.square().mean(-1, /*keepdim=*/true);
  return weight * (variance + epsilon).rsqrt();
}

Tensor Pass::normalised(const NormCall& call) const {
  if (watch != nullptr) return watch->normalised(call, unwatched());
  if (call.centred)
    return at::layer_norm(call.x, {call.x.size(-1)}, call.weight, call.bias, call.epsilon);
  const Tensor made = call.x * call.factors(call.x);
  return call.bias.defined() ? made + call.bias : made;
}

Tensor Pass::activated(const Tensor& x, Tensor (*f)(const Tensor& x)) const {
  return watch == nullptr ? f(x) : watch->activated(x, f, unwatched());
}

AttentionResult Watch::attention(const AttentionCall& call, const Pass& rest) {
  return rest.attention(call.query, call.key, call.value, call.spec, call.output);
}

Tensor Watch::weights(const Tensor& query, const Tensor& key, const Tensor& lse,
                      const AttentionSpec& spec, const Pass& rest) {
  return rest.weights(query, key, lse, spec);
}

Tensor Watch::normalised(const NormCall& call, const Pass& rest) { return rest.normalised(call); }

Tensor Watch::activated(const Tensor& x, Tensor (*f)(const Tensor& x), const Pass& rest) {
  return rest.activated(x, f);
}

Tensor Watch::vectors(WatchedVectors which, const Tensor& vectors, const Pass& rest) {
  return rest.watched(which, vectors);
}

}  // namespace attend
