#include "attend/metrics/likelihood.h"

#include <cmath>
#include <numbers>

namespace attend {

double Likelihood::loss() const { return tokens == 0 ? 0 : nats / static_cast<double>(tokens); }

double Likelihood::perplexity() const { return std::exp(loss()); }

Likelihood Likelihood::known() const {
  return {.nats = nats - unknown_nats, .tokens = tokens - unknown, .bytes = bytes - unknown_bytes};
}

double Likelihood::bits_per_byte() const {
  const Likelihood read = known();
  return read.bytes <= 0 ? 0 : read.nats / std::numbers::ln2 / static_cast<double>(read.bytes);
}

}  // namespace attend
