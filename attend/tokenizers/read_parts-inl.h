#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/tokenizers/json.h"
#include "attend/tokenizers/tokenizer_parts-inl.h"

namespace attend::internal {

// Read the parts of a tokenizer.json. Errors name the file and the path within it.
NormaliserPointer read_normaliser(const JsonPosition& place);
SplitterPointer read_splitter(const JsonPosition& place);
TokenModelPointer read_model(const JsonPosition& place);
SequenceTemplate read_sequence(const JsonPosition& place);
TokenDecoderPointer read_decoder(const JsonPosition& place);
// The ids must be ids of the model's tokens or follow them without gaps.
std::vector<AddedToken> read_added_tokens(const JsonPosition& place, const TokenTable& tokens);

// Reads a JSON object of token ids. They must count from 0 without gaps.
TokenTable read_vocabulary(const JsonPosition& place);

// Reads all parts of the file.
std::shared_ptr<const TokenizerParts> read_parts(const Json& json, const std::string& name);

// Default prefix of WordPiece tokens that continue a word.
constexpr const char* continuation_prefix = "##";
// Default mark that Metaspace writes for a space.
constexpr const char* space_mark = "\u2581";

// Reads when Metaspace prepends a mark, from the old or the new form of its settings.
Prepend read_prepend(const JsonPosition& place);
// Reads a non-empty text of at most 4096 bytes.
std::string read_filled(const JsonPosition& place, const char* key, const char* otherwise);

}  // namespace attend::internal
