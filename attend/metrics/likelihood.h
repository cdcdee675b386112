#pragma once

#include <cstdint>

namespace attend {

// What a model gives to texts.
struct Likelihood {
  double nats = 0;     // negative log-likelihood of all tokens, ends included
  int64_t tokens = 0;  // ends included
  int64_t bytes = 0;   // of the texts in UTF-8, one for the end of each included
  // The tokens that the model does not know. It distinguishes them from others, but not from each
  // other: their probability covers more texts than this one.
  double unknown_nats = 0;
  int64_t unknown = 0;
  int64_t unknown_bytes = 0;
  int64_t asked = 0;  // tokens that a masked language model was asked for; 0: all

  double loss() const;           // nats per token
  double perplexity() const;     // of a token
  Likelihood known() const;      // without unknown tokens
  double bits_per_byte() const;  // of what is known; only that could be written in so many bits
};

}  // namespace attend
