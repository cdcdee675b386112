#include <algorithm>

#include "attend/base/error.h"
#include "attend/import/config_keys-inl.h"
#include "attend/import/conversion-inl.h"
#include "attend/import/export_translator-inl.h"
#include "attend/import/generation-inl.h"

namespace attend::internal {
namespace {

using at::Tensor;

Tensor parameter(const PairModel& model, const char* name) {
  const auto parameters = model.network->named_parameters();
  const Tensor* const found = parameters.find(name);
  return found == nullptr ? Tensor() : found->detach();
}

Tensor token_vectors(const PairModel& model) {
  return parameter(model, "source_embedding.tokens.weight");
}

// Whether two lists choose different vectors.
bool differ(const Tensor& vectors, const std::vector<int64_t>& rows,
            const std::vector<int64_t>& others) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != others[i] && !vectors[rows[i]].equal(vectors[others[i]])) return true;
  return false;
}

// Row of the table of classes.
struct TranslatorExport {
  bool (*fits)(const TransformerConfig& ours);
  ExportedFolder (*make)(const PairModel& model, const std::string& folder);
};

const std::vector<TranslatorExport>& translator_exports() {
  static const std::vector<TranslatorExport> table = {
      {[](const TransformerConfig& ours) { return ours.norm == NormKind::rms; }, exported_t5},
      {[](const TransformerConfig& ours) {
         return ours.positions == Positions::sinusoidal_fairseq;
       },
       exported_m2m100},
      {[](const TransformerConfig& ours) { return ours.positions == Positions::learned; },
       exported_mbart},
      {[](const TransformerConfig&) { return true; }, exported_marian}};
  return table;
}

}  // namespace

ExportedFolder exported_translator(const PairModel& model, const std::string& folder) {
  ModelConfig config = model.config;
  const auto& ours = config.of<TransformerConfig>();
  const auto& table = translator_exports();
  return std::find_if(table.begin(), table.end(),
                      [&](const TranslatorExport& row) { return row.fits(ours); })
      ->make(model, folder);
}

std::vector<std::string> spelled_tokens(const Vocabulary& vocabulary) {
  std::vector<std::string> spelled;
  for (int64_t id = first_own_token; id < vocabulary.size(); ++id) {
    const std::string& name = vocabulary.token(id);
    const std::string inner = name.size() > 2 ? name.substr(1, name.size() - 2) : "";
    spelled.push_back(vocabulary_name(inner, 0) == name ? inner : name);
  }
  return spelled;
}

int64_t id_of(const std::vector<std::string>& tokens, std::string_view token,
              const std::string& folder) {
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end())
    fail("{}: has no token {}, which translators of transformers have", folder, token);
  return found - tokens.begin();
}

int64_t end_of_answers(const PairModel& model, const std::set<int64_t>& others,
                       const std::string& folder) {
  Tensor biases = parameter(model, "output_bias");
  if (!biases.defined()) biases = parameter(model, "output.bias");
  std::vector<int64_t> ends;
  for (int64_t id = first_own_token; biases.defined() && id < biases.size(0); ++id)
    if (biases[id].item<double>() < never_answered / 2 && !others.contains(id - first_own_token))
      ends.push_back(id - first_own_token);
  if (ends.size() != 1)
    fail(
        "{}: {} tokens of its tokenizer end answers; only imported translators, with one, are "
        "exported",
        folder, ends.size());
  return ends[0];
}

int64_t begin_of_answers(const PairModel& model, const std::vector<int64_t>& tokens) {
  ModelConfig config = model.config;
  if (const auto shared = config.of<TransformerConfig>().shared(); !shared.empty())
    return shared[Vocabulary::bos];
  const Tensor vectors = token_vectors(model);
  for (const int64_t token : tokens)
    if (vectors[first_own_token + token].equal(vectors[Vocabulary::bos])) return token;
  return tokens.at(0);
}

Json translator_config(const char* architecture, const char* type, const TransformerConfig& ours,
                       int64_t tokens) {
  return {{"architectures", Json::array({architecture})},
          {"model_type", type},
          {"is_encoder_decoder", true},
          {"d_model", ours.depth},
          {"encoder_layers", ours.encoder_layers},
          {"decoder_layers", ours.decoder_layers},
          {"num_hidden_layers", ours.encoder_layers},
          {"encoder_attention_heads", ours.heads},
          {"decoder_attention_heads", ours.heads},
          {"encoder_ffn_dim", ours.feed_forward},
          {"decoder_ffn_dim", ours.feed_forward},
          {"activation_function", activation_name(ours.activation)},
          {"dropout", ours.dropout},
          {"attention_dropout", ours.attention_dropout},
          {"activation_dropout", 0},
          {"max_position_embeddings", ours.maximum_source_length},
          {"scale_embedding", ours.scale_embedding},
          {"vocab_size", tokens}};
}

void take_fixed_rows(const PairModel& model, ExportedTokens& tokens, const ForeignModel& again) {
  const FixedTokens& fixed = *again.fixed;
  const auto put = [](std::vector<int64_t>& rows, int64_t token, int64_t row) {
    rows.at(static_cast<size_t>(token)) = row;
  };
  tokens.outputs = tokens.vectors;
  for (int64_t id = 0; id < first_own_token; ++id)
    if (const auto& token = fixed.scores[static_cast<size_t>(id)]) put(tokens.outputs, *token, id);
  // Texts have our token for unknown parts.
  if (const auto& token = fixed.scores[Vocabulary::unknown])
    put(tokens.vectors, *token, Vocabulary::unknown);
  const int64_t begin = fixed.rows[Vocabulary::bos];
  // No text contains padding.
  if (begin == fixed.rows[Vocabulary::padding]) put(tokens.vectors, begin, Vocabulary::bos);
  tokens.answers = tokens.vectors;
  put(tokens.answers, begin, Vocabulary::bos);
  ModelConfig config = model.config;
  const auto& ours = config.of<TransformerConfig>();
  if (!ours.shared().empty()) return;
  const Tensor vectors = token_vectors(model);
  tokens.separate = differ(vectors, tokens.vectors, tokens.answers) ||
                    (shares_output(ours.tied) && differ(vectors, tokens.vectors, tokens.outputs));
}

void add_translator_generation(const PairModel& model, std::optional<int64_t> first,
                               ExportedFolder& made) {
  const FixedTokens& fixed = *made.again.fixed;
  Json& generation = made.documents["generation_config.json"];
  generation = exported_generation(model.decode,
                                   {.end = fixed.rows[Vocabulary::eos],
                                    .first_tokens = made.again.answers_in_languages() ? 1 : 0});
  generation["pad_token_id"] = fixed.rows[Vocabulary::padding];
  generation["decoder_start_token_id"] = fixed.rows[Vocabulary::bos];
  if (first) generation["forced_bos_token_id"] = *first;
  // Padding is never answered.
  if (fixed.scores[Vocabulary::padding])
    generation["bad_words_ids"] = Json::array({Json::array({fixed.rows[Vocabulary::padding]})});
}

}  // namespace attend::internal
