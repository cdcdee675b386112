#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/tokenizers/json.h"
#include "attend/tokenizers/tokenizer_parts-inl.h"

namespace attend::internal {

// The parts of a tokenizer.json. Errors name the file and the place in it.
NormaliserPointer read_normaliser(const JsonPlace& place);
SplitterPointer read_splitter(const JsonPlace& place);
TokenModelPointer read_model(const JsonPlace& place);
SequenceTemplate read_sequence(const JsonPlace& place);
TokenDecoderPointer read_decoder(const JsonPlace& place);
// The ids must be those of the model's tokens, or follow upon them.
std::vector<AddedToken> read_added_tokens(const JsonPlace& place, const TokenTable& tokens);

// The tokens of an object of ids, which count from 0 without holes.
TokenTable read_vocabulary(const JsonPlace& place);

// The parts of the whole file.
std::shared_ptr<const TokenizerParts> read_parts(const Json& json, const std::string& name);

// What WordPiece puts in front of tokens that continue a word, where a file does not say.
constexpr const char* continuation_prefix = "##";
// What Metaspace writes in place of a space, where a file does not say.
constexpr const char* space_mark = "\u2581";

// How Metaspace puts a mark in front, by its settings of either form.
Prepend read_prepend(const JsonPlace& place);
// A member that is a text, not empty and of at most 4096 bytes.
std::string read_filled(const JsonPlace& place, const char* key, const char* otherwise);

}  // namespace attend::internal
