#pragma once

#include <vector>

#include "attend/import/config_keys-inl.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/transformer_config.h"

namespace attend::internal {

// Translators with the layers of BART (Lewis et al. 2020): Marian, M2M100 and mBART.

// Returns `own` after the keys of config.json that all of them have.
std::vector<ConfigKey> with_translator_keys(const std::vector<ConfigKey>& own);

// Reads sizes, dropout and the activation, by default `activation`. The type sets positions and
// norms.
void read_translator_layers(const JsonPosition& config, const char* activation,
                            TransformerConfig& ours);

// Returns the rows of the embedding and of the layers, without positions and output.
std::vector<TensorRow> translator_tensors(const TransformerConfig& ours);

// Adds the rows of the output, which repeats the embedding, and of its biases, last.
void add_translator_output(const TensorRow& biases, ForeignModel& model);

// Adds the rows of the weight and the bias of a layer.
void add_translator_part(const std::string& theirs, const std::string& ours,
                         std::vector<TensorRow>& rows);

// Whether both tensors are defined and differ.
bool has_another_table(const at::Tensor& shared, const at::Tensor& other);

// Reads the sizes of the vocabulary and the tokens that begin and end answers. An answer begins
// with `decoder_start_token_id`, or, if it is missing, with `usual_begin`, a key. Error if padding
// ends answers.
void read_translator_tokens(const JsonPosition& config, const char* usual_begin,
                            ForeignModel& model);

}  // namespace attend::internal
