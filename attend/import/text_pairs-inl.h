#pragma once

#include <string>

#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/sentence_encoder-inl.h"

namespace attend::internal {

// Reads the settings of a cross-encoder of sentence-transformers: the maximum number of tokens,
// whether texts become lower-case, and prompts. Returns an empty layer for other folders. Error on
// a cross-encoder of a class without labels.
TextLayer read_cross_encoder(const std::string& folder, const JsonPosition& config,
                             const ForeignModel& model);

// Sets how a classifier or a reader of texts reads pairs, and what a number means. A cross-encoder
// reads only pairs, and its config names an activation: none, or the sigmoid, which makes a number
// a probability. A reader reads only pairs, too. Any other classifier reads a source with a TAB as
// a pair. Error on other activations.
void read_pairs(const std::string& folder, const JsonPosition& config,
                const TokenizerSettings& settings, const TextTokenizer& tokenizer,
                ForeignModel& model);

// Keeps the vectors of token types 0 and 1 for the first and the second text, instead of adding the
// first to the positions.
void keep_token_types(ForeignModel& model);

// Our parameter with the vectors of token types.
constexpr const char* side_vectors_name = "encoder.sides";

// Key of a config.json with the activation of a cross-encoder, and its values.
constexpr const char* cross_encoder_key = "sentence_transformers";
constexpr const char* activation_key = "activation_fn";
constexpr const char* no_activation = "torch.nn.modules.linear.Identity";
constexpr const char* sigmoid_activation = "torch.nn.modules.activation.Sigmoid";

// Key of tokenizer_config.json with the inputs of a model, and the input of token types.
constexpr const char* inputs_key = "model_input_names";
constexpr const char* types_input = "token_type_ids";

}  // namespace attend::internal
