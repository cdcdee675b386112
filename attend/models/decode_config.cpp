#include "attend/models/decode_config.h"

namespace attend {

Settings DecodeConfig::settings() {
  constexpr double max_tokens = 1'000'000;
  return {
      {"decode.beam", &beam, "beam size: hypotheses kept per source; 1 is greedy search", 1, 1000},
      {"decode.length_penalty", &length_penalty,
       "rank by log probability / length^this; 0: no penalty", 0, 10},
      {"decode.minimum_length", &minimum_length, "minimum number of tokens of an answer", 0,
       max_tokens},
      {"decode.maximum_length", &maximum_length,
       "maximum number of tokens of an answer; 0: 3 per token of the source, plus 10", 0,
       max_tokens}};
}

}  // namespace attend
