#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "attend/import/export-inl.h"
#include "attend/models/transformer_config.h"
#include "attend/text/vocabulary.h"

namespace attend::internal {

// Export of models of type transformer, which came from a translator.

// Our row of their token 0.
constexpr int64_t first_own_token = Vocabulary::unknown + 1;

// Returns their tokens by id, as vocab.json spells them.
std::vector<std::string> spelled_tokens(const Vocabulary& vocabulary);
// Returns the id of a token. Error, naming the folder, if there is none.
int64_t id_of(const std::vector<std::string>& tokens, std::string_view token,
              const std::string& folder);

// Returns their token that ends answers: the output's bias says that it is never answered, because
// our EOS replaces it. `others` are never answered, too. Error if there is not one such token.
int64_t end_of_answers(const PairModel& model, const std::set<int64_t>& others,
                       const std::string& folder);
// Returns the token that shares its vector with our BOS. Without model.shared_tokens it is the
// first of `tokens` with an equal vector; the first one if none has.
int64_t begin_of_answers(const PairModel& model, const std::vector<int64_t>& tokens);

// Returns the keys of config.json that translators with the layers of BART have.
Json translator_config(const char* architecture, const char* type, const TransformerConfig& ours,
                       int64_t tokens);

// Chooses the rows of our tables for sources, answers and the output, by the fixed tokens of
// `made.again`. `tokens.separate` says whether they have different vectors after training without
// model.shared_tokens, so that encoder, decoder and output need tables of their own.
void take_fixed_rows(const PairModel& model, ExportedTokens& tokens, const ForeignModel& again);

// Sets model.tied of a T5 that answers, and the rows of its tensors.
void set_t5_output(Tied tied, ForeignModel& model);

// Adds generation_config.json. `first` is the token that begins each answer, if there is one.
void add_translator_generation(const PairModel& model, std::optional<int64_t> first,
                               ExportedFolder& made);

}  // namespace attend::internal
