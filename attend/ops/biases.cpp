#include "attend/ops/biases.h"

namespace attend {
namespace {

// Applies `changed` to each term.
template <class Changed>
Bias with_terms(Bias bias, Changed changed) {
  for (BiasTermPointer& term : bias.terms) term = changed(*term);
  return bias;
}

}  // namespace

Bias operator+(const Bias& a, const Bias& b) {
  Bias sum = a;
  sum.terms.insert(sum.terms.end(), b.terms.begin(), b.terms.end());
  return sum;
}

Bias shifted(const Bias& bias, int64_t offset, int64_t queries) {
  return with_terms(bias, [&](const BiasTerm& term) { return term.shifted(offset, queries); });
}

Bias shifted_keys(const Bias& bias, int64_t first, int64_t keys) {
  return with_terms(bias, [&](const BiasTerm& term) { return term.shifted_keys(first, keys); });
}

Bias placed(const Bias& bias, const QueryOffset& place) {
  return with_terms(bias, [&](const BiasTerm& term) { return term.placed(place); });
}

}  // namespace attend
