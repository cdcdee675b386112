// A project of its own, built against the installed library.
#include <cstdio>

#include "attend/ops/attention.h"

int main() {
  const at::Tensor query = at::randn({2, 8}), key = at::randn({5, 8}), value = at::randn({5, 3});
  const auto [context, lse] = attend::attention(query, key, value, {.score = "cosine"});
  const at::Tensor weights = attend::attention_weights(query, key, lse, {.score = "cosine"});
  const bool right = at::allclose(at::matmul(weights, value), context, 1e-5, 1e-6);
  std::puts(right ? "consumer: the weights give the context" : "consumer: they disagree");
  return right ? 0 : 1;
}
