#pragma once

#include <cstdint>
#include <optional>

#include "attend/tokenizers/added_tokens-inl.h"
#include "attend/tokenizers/decoder-inl.h"
#include "attend/tokenizers/normaliser-inl.h"
#include "attend/tokenizers/post_processor-inl.h"
#include "attend/tokenizers/splitter-inl.h"
#include "attend/tokenizers/token_model-inl.h"

namespace attend::internal {

// What a text goes through, in this order; decoding goes back by the decoder alone.
struct TokenizerParts {
  NormaliserPointer normaliser = nullptr;  // or none
  AddedTokens added = {};
  SplitterPointer splitter = nullptr;  // or none: the text is one piece
  TokenModelPointer model = nullptr;
  SequenceTemplate sequence = {};
  TokenDecoderPointer decoder = spaces_decoder();
  std::optional<int64_t> maximum = {};  // ids of a text, where a call does not say
  bool cut_left = false;                // what is too long loses its beginning
};

}  // namespace attend::internal
