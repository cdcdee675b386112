#pragma once

#include <cstdint>

namespace attend {

// Likelihood of texts under a model.
struct Likelihood {
  double nats = 0;     // negative log-likelihood of all tokens, with ends
  int64_t tokens = 0;  // with ends
  int64_t bytes = 0;   // UTF-8 bytes of the texts, plus one per end
  // Unknown tokens. The model does not distinguish them from each other, so their probability also
  // covers other texts.
  double unknown_nats = 0;
  int64_t unknown = 0;
  int64_t unknown_bytes = 0;
  int64_t asked = 0;  // masked tokens of a masked language model; 0: all

  double loss() const;           // nats per token
  double perplexity() const;     // per token
  Likelihood known() const;      // without unknown tokens
  double bits_per_byte() const;  // known tokens only: unknown ones cannot be decoded
};

}  // namespace attend
