#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attend/tokenizers/added_tokens-inl.h"
#include "attend/tokenizers/decoder-inl.h"
#include "attend/tokenizers/normaliser-inl.h"
#include "attend/tokenizers/post_processor-inl.h"
#include "attend/tokenizers/splitter-inl.h"
#include "attend/tokenizers/token_model-inl.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend::internal {

// The steps of encoding, in order. Decoding uses only the decoder.
struct TokenizerParts {
  NormaliserPointer normaliser = nullptr;  // optional
  AddedTokens added = {};
  SplitterPointer splitter = nullptr;  // optional; without it the text is one piece
  TokenModelPointer model = nullptr;
  SequenceTemplate sequence = {};
  TokenDecoderPointer decoder = spaces_decoder();
  std::optional<int64_t> maximum = {};  // default maximum number of ids of a text
  bool cut_left = false;                // a text that is too long loses its beginning
  std::vector<LanguageToken> languages = {};
};

}  // namespace attend::internal
